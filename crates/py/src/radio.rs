//! PBE-CC's capacities and 3GPP's block sizes, over arrays. `python/airpace` broadcasts all arrays of a call to one length.

use airpace_cc::pbe::capacity::Averages;
use airpace_cc::pbe::translation::{BlockSize, Translation};
use airpace_core::Bits;
use airpace_core::tables::{lte, nr};
use airpace_radio::BitLayer;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::raise;

type Floats<'py> = PyReadonlyArray1<'py, f64>;
type Numbers<'py> = PyReadonlyArray1<'py, i64>;

/// Pexp, Cf, Cp, Pidle and Ct of PBE-CC's Eq. 1 to 5.
type Capacities<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

/// Capacity of a carrier for one device, per subframe: see `airpace.capacity`. A NaN as SINR or block size means unknown.
#[pyfunction]
#[pyo3(signature = (own_prbs, used_prbs, carrier_prbs, users, bits_per_prb, sinr_db, block_bits, overhead))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a function of Python")]
pub fn capacity<'py>(
    py: Python<'py>,
    own_prbs: Floats<'py>,
    used_prbs: Floats<'py>,
    carrier_prbs: Floats<'py>,
    users: Floats<'py>,
    bits_per_prb: Floats<'py>,
    sinr_db: Floats<'py>,
    block_bits: Floats<'py>,
    overhead: f64,
) -> PyResult<Capacities<'py>> {
    let [own, used, cell] = [own_prbs.as_slice()?, used_prbs.as_slice()?, carrier_prbs.as_slice()?];
    let [users, bits] = [users.as_slice()?, bits_per_prb.as_slice()?];
    let [sinr, block] = [sinr_db.as_slice()?, block_bits.as_slice()?];
    let mut on_air = Translation::new(BlockSize::OnAir, overhead);
    let mut of_capacity = Translation::new(BlockSize::Capacity, overhead);
    let mut all: [Vec<f64>; 5] = std::array::from_fn(|_| Vec::with_capacity(own.len()));
    for at in 0..own.len() {
        let idle_prbs = cell[at] - used[at];
        let sinr_db = Some(sinr[at]).filter(|sinr| !sinr.is_nan());
        let averages = Averages {
            bits_per_prb: bits[at],
            own_prbs: own[at],
            idle_prbs,
            recently_idle_prbs: idle_prbs,
            carrier_prbs: cell[at],
            users: users[at],
            pull: 0.0,
            block_bits: block[at],
            sinr_db,
            new_prbs: 0.0,
            retransmitted_prbs: 0.0,
            long_term_share: 1.0,
            layer: BitLayer::Physical,
        };
        let physical = averages.capacity_bits();
        let transport = match block[at].is_nan() {
            true => of_capacity.goodput(physical, physical, sinr_db),
            false => on_air.goodput(physical, block[at], sinr_db),
        };
        let of = [averages.fair_share_prbs(), averages.fair_share_bits(), physical, idle_prbs, transport];
        all.iter_mut().zip(of).for_each(|(all, one)| all.push(one));
    }
    let [expected, fair, physical, idle, transport] = all.map(|one| PyArray1::from_vec(py, one));
    Ok((expected, fair, physical, idle, transport))
}

/// Sizes of LTE transport blocks (bits) by TBS index: see `airpace.lte_tbs`.
#[pyfunction]
pub fn lte_tbs<'py>(
    py: Python<'py>,
    i_tbs: Numbers<'py>,
    n_prb: Numbers<'py>,
    layers: Numbers<'py>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let size = |[i_tbs, n_prb, layers]: [i64; 3]| {
        let size =
            lte::tbs(u8::try_from(i_tbs).ok()?, u16::try_from(n_prb).ok()?, u8::try_from(layers).ok()?);
        size.map(bits)
    };
    each(py, [&i_tbs, &n_prb, &layers], size, |[i_tbs, n_prb, layers]| {
        format!(
            "no block has TBS index {i_tbs}, {n_prb} PRB pairs and {layers} layers; give 0 to 33, 1 to 110, and 1 or 2"
        )
    })
}

/// Sizes of LTE transport blocks (bits) by MCS: see `airpace.lte_mcs_tbs`.
#[pyfunction]
pub fn lte_mcs_tbs<'py>(
    py: Python<'py>,
    mcs: Numbers<'py>,
    n_prb: Numbers<'py>,
    layers: Numbers<'py>,
    table: &str,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let table = match table {
        "64qam" => lte::McsTable::Qam64,
        "256qam" => lte::McsTable::Qam256,
        other => {
            return Err(raise::value(format!("no MCS table of LTE is `{other}`; there are 64qam, 256qam")));
        }
    };
    let size = |[mcs, n_prb, layers]: [i64; 3]| {
        let row = table.mcs(u8::try_from(mcs).ok()?)?;
        let (n_prb, layers) = (u16::try_from(n_prb).ok()?, u8::try_from(layers).ok()?);
        // A reserved row is a retransmission with the size of the first transmission, which is unknown here: 0.
        let size = lte::tbs(row.i_tbs.unwrap_or(0), n_prb, layers)?;
        Some(row.i_tbs.map_or(0, |_| bits(size)))
    };
    each(py, [&mcs, &n_prb, &layers], size, |[mcs, n_prb, layers]| {
        format!(
            "no block has MCS {mcs}, {n_prb} PRB pairs and {layers} layers; give 0 to 31, 1 to 110, and 1 or 2"
        )
    })
}

/// Sizes of NR transport blocks (bits) by MCS: see `airpace.nr_mcs_tbs`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the arguments of a function of Python")]
pub fn nr_mcs_tbs<'py>(
    py: Python<'py>,
    mcs: Numbers<'py>,
    n_prb: Numbers<'py>,
    symbols: Numbers<'py>,
    dmrs_res_per_prb: Numbers<'py>,
    overhead_res_per_prb: Numbers<'py>,
    layers: Numbers<'py>,
    table: &str,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let table = match table {
        "64qam" => nr::McsTable::Qam64,
        "256qam" => nr::McsTable::Qam256,
        "64qam-low-se" => nr::McsTable::LowEfficiency,
        other => {
            let reason = format!("no MCS table of NR is `{other}`; there are 64qam, 256qam, 64qam-low-se");
            return Err(raise::value(reason));
        }
    };
    let size = |[mcs, n_prb, symbols, dmrs, overhead, layers]: [i64; 6]| {
        let (mcs, layers) = (u8::try_from(mcs).ok()?, u8::try_from(layers).ok()?);
        let allocation = nr::Allocation {
            n_prb: u16::try_from(n_prb).ok().filter(|prbs| (1..=275).contains(prbs))?,
            symbols: u8::try_from(symbols).ok().filter(|symbols| (1..=14).contains(symbols))?,
            dmrs_res_per_prb: u16::try_from(dmrs).ok().filter(|_| dmrs <= 12 * symbols)?,
            // Source: TS 38.214 §5.1.3.2
            overhead_res_per_prb: u16::try_from(overhead).ok().filter(|res| [0, 6, 12, 18].contains(res))?,
        };
        let row = table.mcs(mcs).filter(|_| (1..=8).contains(&layers))?;
        Some(row.rate.map_or(0, |rate| bits(nr::tbs(allocation.res(), row.modulation, rate, layers))))
    };
    let all = [&mcs, &n_prb, &symbols, &dmrs_res_per_prb, &overhead_res_per_prb, &layers];
    each(py, all, size, |[mcs, n_prb, symbols, dmrs, overhead, layers]| {
        format!(
            "no block has MCS {mcs}, {n_prb} PRBs, {symbols} symbols, {layers} layers, dmrs_res_per_prb={dmrs} and \
             overhead_res_per_prb={overhead}; give 0 to 31, 1 to 275, 1 to 14, 1 to 8, at most 12 per symbol, and 0, 6, \
             12 or 18"
        )
    })
}

/// Calls `size` for each index of the arrays. `wrong` returns the error text for arguments that have no size.
fn each<'py, const N: usize>(
    py: Python<'py>,
    arrays: [&Numbers<'py>; N],
    size: impl Fn([i64; N]) -> Option<i64>,
    wrong: impl Fn([i64; N]) -> String,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let slices = arrays.map(|array| array.as_slice());
    let mut columns: [&[i64]; N] = [&[]; N];
    for (column, slice) in columns.iter_mut().zip(slices) {
        *column = slice?;
    }
    let mut sizes = Vec::with_capacity(columns[0].len());
    for at in 0..columns[0].len() {
        let of = columns.map(|column| column[at]);
        sizes.push(size(of).ok_or_else(|| raise::value(wrong(of)))?);
    }
    Ok(PyArray1::from_vec(py, sizes))
}

fn bits(size: Bits) -> i64 {
    i64::try_from(size.0).unwrap_or(i64::MAX)
}
