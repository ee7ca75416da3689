//! Reusable memory for received datagrams.
//!
//! noq keeps stream data in the buffer of the received datagram until the data are read. A separate allocation per
//! datagram would cost more than reading it. Datagrams are therefore placed one after another in a few large blocks.
//! A block is reused when none of its data are in use. If all blocks are in use (because an application does not
//! read, or a stream has a gap), each datagram gets a separate allocation. A small waiting piece then keeps only its
//! own datagram in memory, in addition to the fixed number of blocks.

use bytes::BytesMut;

/// Size of a block (bytes).
///
/// Chosen: a group of datagrams that the kernel has joined (GRO). The largest datagram fits.
const BLOCK: usize = 1 << 16;

/// Maximum number of blocks.
///
/// Chosen: all of them fit into the private cache of a CPU core.
const MAX_BLOCKS: usize = 4;

/// The blocks of an endpoint.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<BytesMut>,
    /// Index of the block in use.
    at: usize,
}

impl Blocks {
    /// Copies a datagram into a block.
    pub(super) fn copy(&mut self, datagram: &[u8]) -> BytesMut {
        match self.with_room(datagram.len()) {
            Some(block) => {
                block.extend_from_slice(datagram);
                block.split()
            }
            None => BytesMut::from(datagram),
        }
    }

    fn with_room(&mut self, bytes: usize) -> Option<&mut BytesMut> {
        if self.blocks.get(self.at).is_none_or(|block| block.capacity() < bytes) {
            // `try_reclaim` succeeds only if no data of the block are in use.
            let free = self.blocks.iter_mut().position(|block| block.try_reclaim(BLOCK));
            self.at = match free {
                Some(free) => free,
                None if self.blocks.len() < MAX_BLOCKS && bytes <= BLOCK => {
                    self.blocks.push(BytesMut::with_capacity(BLOCK));
                    self.blocks.len() - 1
                }
                None => return None,
            };
        }
        self.blocks.get_mut(self.at).filter(|block| block.capacity() >= bytes)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_read_makes_room_for_what_follows() {
        let mut blocks = Blocks::default();
        for _ in 0..10_000 {
            let group: Vec<BytesMut> = (0..64_u8).map(|at| blocks.copy(&[at; 1472])).collect();
            assert!(group.iter().zip(0..).all(|(held, at)| held[..] == [at; 1472]));
        }
        assert_eq!(blocks.blocks.len(), 3, "a group takes two, and shares one with the next");
    }

    #[test]
    fn small_pieces_that_wait_keep_a_fixed_number_of_blocks() {
        let mut blocks = Blocks::default();
        let mut kept = vec![];
        for _ in 0..2000 {
            kept.push(blocks.copy(&[1; 1472]).split_to(1));
        }
        assert_eq!(blocks.blocks.len(), MAX_BLOCKS);
        let own =
            kept.drain(..).skip(MAX_BLOCKS * (BLOCK / 1472)).map(BytesMut::freeze).filter(Bytes::is_unique);
        assert_eq!(own.count(), 2000 - MAX_BLOCKS * (BLOCK / 1472), "the others have their own");
        let again = blocks.copy(&[2; 1472]);
        assert!(blocks.blocks.iter().any(|block| block.as_ptr() == again.as_ptr().wrapping_add(1472)));
    }

    proptest! {
        #[test]
        fn nothing_is_written_over(steps in prop::collection::vec((0_usize..4000, any::<bool>(), any::<prop::sample::Index>()), 0..300)) {
            let mut blocks = Blocks::default();
            let mut held: Vec<(BytesMut, u8)> = vec![];
            for (at, (size, drops, which)) in steps.into_iter().enumerate() {
                if drops && !held.is_empty() {
                    held.swap_remove(which.index(held.len()));
                }
                let copied = blocks.copy(&vec![at as u8; size]);
                prop_assert_eq!(copied.len(), size);
                held.push((copied, at as u8));
                prop_assert!(held.iter().all(|(bytes, byte)| bytes.iter().all(|found| found == byte)));
            }
            prop_assert!(blocks.blocks.len() <= MAX_BLOCKS);
        }
    }
}
