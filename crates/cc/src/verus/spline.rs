//! Cubic splines through points of rising abscissa, or smoothly between such points. The results are tables of the
//! spline's values at 0, 1, 2, …

/// The natural cubic spline through `points`, evaluated at 0, 1, … `largest`. The spline is straight before the first
/// point and after the last point.
///
/// The second derivatives at the points are the solution of a tridiagonal system of equations.
pub fn interpolated(points: &[(f64, f64)], largest: usize) -> Vec<f64> {
    let last = points.len() - 1;
    // Thomas' algorithm; the second derivatives at both ends are zero.
    let mut above = vec![0.0; points.len()];
    let mut bends = vec![0.0; points.len()];
    for index in 1..last {
        let (before, here, after) = (points[index - 1], points[index], points[index + 1]);
        let (left, right) = (here.0 - before.0, after.0 - here.0);
        let jump = 6.0 * ((after.1 - here.1) / right - (here.1 - before.1) / left);
        let pivot = 2.0 * (left + right) - left * above[index - 1];
        above[index] = right / pivot;
        bends[index] = (jump - left * bends[index - 1]) / pivot;
    }
    for index in (1..last).rev() {
        bends[index] -= above[index] * bends[index + 1];
    }
    let mut segment = 0;
    (0..=largest)
        .map(|x| {
            let x = x as f64;
            while segment + 1 < last && points[segment + 1].0 < x {
                segment += 1;
            }
            let (low, high) = (points[segment], points[segment + 1]);
            let width = high.0 - low.0;
            let (bend_low, bend_high) = (bends[segment], bends[segment + 1]);
            let rise = (high.1 - low.1) / width;
            if x < low.0 {
                return low.1 + (rise - width * (2.0 * bend_low + bend_high) / 6.0) * (x - low.0);
            }
            let (a, b) = ((high.0 - x) / width, (x - low.0) / width);
            let curved = ((a * a * a - a) * bend_low + (b * b * b - b) * bend_high) * width * width / 6.0;
            a * low.1 + b * high.1 + curved
        })
        .collect()
}

/// Number of cubic B-splines that are not zero at a given point. It is the width of the matrix's band.
const BAND: usize = 4;

/// Weight of bending, as a multiple of the largest weight that the points give to one B-spline.
///
/// Source: verus src/verus_server.cpp (2015), which calls `spline1dfitpenalized` of ALGLIB with ρ = 2. That weighs bending
/// with 10^ρ times the ratio of the largest terms of both kinds, for the natural splines that are one at one knot and
/// zero at the others. For evenly spread points, that is this multiple.
const BENDING: f64 = 13.5;

/// For each of the four B-splines that are not zero in a part: the second derivative at the start of the part, and its
/// increase to the end of the part.
const BENDS: [(f64, f64); BAND] = [(1.0, -1.0), (-2.0, 3.0), (1.0, -3.0), (0.0, 1.0)];

/// The cubic spline with `parts` equal parts that approximates `points` with little curvature, evaluated at 0, 1, …
/// `largest`.
///
/// The spline is fitted by least squares over cubic B-splines, with a penalty on the integral of the squared second
/// derivative.
///
/// Source: verus lib/alglib (2015), `spline1dfitpenalized`
///
/// Differs: the library's spline is straight beyond its ends. The spline here is not exactly straight, but the penalty
/// makes the difference negligible.
pub fn penalised(points: &[(f64, f64)], largest: usize, parts: usize) -> Vec<f64> {
    let begin = points[0].0;
    let width = (points[points.len() - 1].0 - begin) / parts as f64;
    let count = parts + 3;
    // The matrix is symmetric. Row `i` holds its elements at columns i … i + 3.
    let mut matrix = vec![[0.0; BAND]; count];
    let mut right = vec![0.0; count];
    for (x, y) in points {
        let (first, basis) = basis(*x, begin, width, parts);
        for row in 0..BAND {
            right[first + row] += basis[row] * y;
            for column in row..BAND {
                matrix[first + row][column - row] += basis[row] * basis[column];
            }
        }
    }
    let weight = BENDING * matrix.iter().map(|row| row[0]).fold(0.0, f64::max);
    for first in 0..parts {
        for row in 0..BAND {
            for column in row..BAND {
                let ((a, da), (b, db)) = (BENDS[row], BENDS[column]);
                let bent = a * b + (a * db + b * da) / 2.0 + da * db / 3.0;
                matrix[first + row][column - row] += weight * bent;
            }
        }
    }
    let coefficients = solve(&mut matrix, right);
    (0..=largest)
        .map(|x| {
            let (first, basis) = basis(x as f64, begin, width, parts);
            (0..BAND).map(|index| basis[index] * coefficients[first + index]).sum()
        })
        .collect()
}

/// The index of the first of the four cubic B-splines that are not zero at `x`, and their values. Beyond the ends, the
/// polynomials of the outermost part are used.
fn basis(x: f64, begin: f64, width: f64, parts: usize) -> (usize, [f64; BAND]) {
    let at = (x - begin) / width;
    let part = (at.max(0.0) as usize).min(parts - 1);
    let t = at - part as f64;
    let s = 1.0 - t;
    let middle = |t: f64| (4.0 - 6.0 * t * t + 3.0 * t * t * t) / 6.0;
    (part, [s * s * s / 6.0, middle(t), middle(s), t * t * t / 6.0])
}

/// Solves a symmetric positive definite band matrix by Cholesky's decomposition without roots. It overwrites the
/// matrix.
fn solve(matrix: &mut [[f64; BAND]], mut right: Vec<f64>) -> Vec<f64> {
    let count = matrix.len();
    for pivot in 0..count {
        let row = matrix[pivot];
        for below in 1..BAND.min(count - pivot) {
            let factor = row[below] / row[0];
            for column in below..BAND {
                matrix[pivot + below][column - below] -= factor * row[column];
            }
            right[pivot + below] -= factor * right[pivot];
        }
    }
    for pivot in (0..count).rev() {
        for above in 1..BAND.min(count - pivot) {
            right[pivot] -= matrix[pivot][above] * right[pivot + above];
        }
        right[pivot] /= matrix[pivot][0];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spline_goes_through_its_points_and_bends_as_little_as_can_be() {
        // The natural spline through (0,0) (1,1) (2,0) is -x³/2 + 3x/2 for x up to 1, and symmetric about 1.
        let doubled = [(0.0, 0.0), (10.0, 1.0), (20.0, 0.0)];
        let curve = interpolated(&doubled, 20);
        for (x, y) in [(0, 0.0), (5, 0.6875), (10, 1.0), (15, 0.6875), (20, 0.0)] {
            assert!((curve[x] - y).abs() < 1e-12, "{} at {x}", curve[x]);
        }
    }

    #[test]
    fn a_line_stays_a_line_by_both() {
        let points: Vec<(f64, f64)> = (3..60).map(|x| (f64::from(x), 20.0 + 0.5 * f64::from(x))).collect();
        for curve in [interpolated(&points, 59), penalised(&points, 59, 5)] {
            for (x, y) in curve.iter().enumerate() {
                assert!((y - 20.0 - 0.5 * x as f64).abs() < 1e-6, "{y} at {x}");
            }
        }
    }

    #[test]
    fn the_penalised_spline_smooths_noise_away_and_rounds_the_knee() {
        let truth = |x: f64| 40.0 + (x - 60.0).max(0.0);
        let noise = |x: i32| if x % 2 == 0 { 3.0 } else { -3.0 };
        let points: Vec<(f64, f64)> =
            (1..=150).map(|x| (f64::from(x), truth(f64::from(x)) + noise(x))).collect();
        let curve = penalised(&points, 150, 9);
        let off = |x: usize| curve[x] - truth(x as f64);
        for x in [30, 90, 120, 145] {
            assert!(off(x).abs() < 4.0, "off by {} at {x}", off(x));
        }
        assert!((5.0..12.0).contains(&off(60)), "the library's curve is {} ms above the knee", off(60));
    }

    /// The expected values are the solution of a dense least-squares problem over natural splines with ten knots, with
    /// the library's weights.
    #[test]
    fn the_curve_is_the_librarys() {
        let points: Vec<(f64, f64)> = (0..=135)
            .map(|x| (f64::from(x), 40.0 + (f64::from(x) - 60.0).max(0.0) + 5.0 * libm::sin(f64::from(x))))
            .collect();
        let curve = penalised(&points, 135, 9);
        for (x, of_library) in LIBRARY {
            assert!((curve[x] - of_library).abs() < 0.5, "{} at {x}, not {of_library}", curve[x]);
        }
    }

    /// Expected (window, delay) pairs, computed from the description of `spline1dfitpenalized` with ten knots and ρ =
    /// 2.
    const LIBRARY: [(usize, f64); 4] = [(0, 34.78), (45, 42.74), (90, 69.73), (135, 112.34)];
}
