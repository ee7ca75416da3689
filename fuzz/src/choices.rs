//! An input as a series of decisions.
#![allow(dead_code)] // each target uses its part

/// Takes bytes from the front of an input to make decisions. When no bytes are left, the bytes are zeros.
pub struct Choices<'a>(pub &'a [u8]);

impl<'a> Choices<'a> {
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()])) % end.max(1)
    }

    /// Any number. Its length in bits is evenly distributed, so small numbers are as likely as large ones.
    pub fn number(&mut self) -> u64 {
        let bits = self.byte() % 65;
        let number = u64::from_le_bytes([(); 8].map(|()| self.byte()));
        if bits == 0 { 0 } else { number >> (64 - bits) }
    }

    /// Any float: mostly ordinary numbers, sometimes the limits of the type, infinity, NaN or any bit pattern.
    pub fn float(&mut self) -> f32 {
        const EDGES: [f32; 8] = [0.0, 1.0, f32::MAX, f32::MIN_POSITIVE, 1e-45, f32::INFINITY, f32::NAN, 1e19];
        match self.byte() {
            kind @ 0..16 => EDGES[usize::from(kind) / 2] * if kind & 1 == 0 { 1.0 } else { -1.0 },
            16..32 => f32::from_bits(u32::from_le_bytes([(); 4].map(|()| self.byte()))),
            _ => f32::from(self.byte() as i8) * 2f32.powi(i32::from(self.byte() as i8) / 4),
        }
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()]
    }

    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}
