//! NR tables of TS 38.101, TS 38.213, TS 38.214, TS 38.306 and TS 38.321.
//!
//! All tables are constants. Functions return `None` for values that no table contains.

mod bands;
mod buffer_status;
mod mcs;
mod peak_rate;
mod prb_groups;
mod processing_time;
mod spectrum;
mod ss_blocks;
mod tbs;
mod time_allocation;

pub use bands::Band;
pub use buffer_status::{BufferSize, BufferSizeField};
pub use mcs::{Mcs, McsTable};
pub use peak_rate::peak_rate;
pub use prb_groups::{PrbGroups, RbgConfig, rbg_size, subband_sizes};
pub use processing_time::{AdditionalDmrs, pdsch_processing_symbols, pusch_preparation_symbols};
pub use spectrum::{Duplex, FrequencyRange, SubcarrierSpacing, max_prbs};
pub use ss_blocks::SsBlockCase;
pub use tbs::{Allocation, TbsScaling, tbs, tbs_scaled};
pub use time_allocation::{
    DefaultPdschTable, DmrsTypeAPosition, MappingType, TimeAllocation, default_pusch_allocation,
};
