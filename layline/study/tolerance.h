// When a difference counts.
#pragma once

namespace layline::study {

// Step times that differ by less are no difference: repeats of a run differ by about as much.
inline constexpr double kNoticeable = 0.005;
// A prescription holds when what it gives is at most this much slower than the best.
inline constexpr double kPrescriptionTolerance = 0.05;

}  // namespace layline::study
