//! Loads Airpace's schemes into the kernel for the duration of a comparison.

use std::any::Any;

use airpace_cc::SchemeSpec;
use airpace_core::Refused;

/// A loaded and pinned scheme. Dropping the value unloads it.
#[cfg(feature = "bpf")]
struct Loaded(&'static str);

#[cfg(feature = "bpf")]
impl Drop for Loaded {
    fn drop(&mut self) {
        if let Err(error) = airpace_bpf::kernel::unload(self.0) {
            crate::terminal::say(format_args!(
                "`{name}` is still in the kernel: {error}; {unload} removes it",
                name = self.0,
                unload = crate::called::command(&format!("kernel unload {}", self.0))
            ));
        }
    }
}

/// Loads a scheme. Returns its name for the feeder, and a value that unloads the scheme when it is dropped.
///
/// # Errors
/// The kernel accepts no programs, or the scheme is already loaded. A build without the feature `bpf` loads nothing.
#[cfg(feature = "bpf")]
pub fn load(scheme: &SchemeSpec) -> Result<(&'static str, Box<dyn Any>), Refused> {
    let bring_in = || -> anyhow::Result<&'static str> {
        let _turn = airpace_bpf::kernel::turn();
        let (mut kernel, name, doubt) = airpace_bpf::manage::bring_in(scheme)?;
        if let Some(doubt) = doubt {
            return Err(anyhow::Error::from(doubt).context("flows of other programs would not be counted"));
        }
        kernel.pin()?;
        Ok(name)
    };
    let name = bring_in().map_err(|error| Refused::of(error.as_ref()))?;
    Ok((name, Box::new(Loaded(name))))
}

/// Returns an error that names the missing feature.
#[cfg(not(feature = "bpf"))]
pub fn load(_: &SchemeSpec) -> Result<(&'static str, Box<dyn Any>), Refused> {
    Err(crate::cmd::kernel::remedy().into())
}
