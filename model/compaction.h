// When an image that shares pages with earlier ones writes some of them again.
#pragma once

#include <cstddef>
#include <vector>

namespace siding {

// A file of pages of an earlier image, in any one unit. It is kept as a whole, or not at all.
struct SharedLayer {
  double stored = 0;
  double used = 0;  // of that, by the new image
};

// What is kept is no more than so many times what the image has.
inline constexpr double kMostStored = 1.5;

// Less than a quarter of all would be shared, which is not worth the links.
bool IsTooMuchNew(double fresh, double all);

// Which layers, newest first, a new image does not keep, in ascending order: what it uses of them is written
// again, beside `fresh`, which they do not have. Those that it does not use; while too much is kept, the one
// that gives back most for what is written (cost and benefit as in M. Rosenblum, J. K. Ousterhout, "The
// design and implementation of a log-structured file system", ACM Transactions on Computer Systems 10 (1992),
// without the age); where they are more than `most_layers`, the smallest, and all that are no larger than
// what is written by then: so each page is written again a number of times that grows as the logarithm of the
// row (J. L. Bentley, J. B. Saxe, "Decomposable searching problems I", Journal of Algorithms 1 (1980)). All,
// if IsTooMuchNew() then. Pure.
std::vector<size_t> LayersToWriteAgain(const std::vector<SharedLayer>& layers, double fresh,
                                       size_t most_layers);

}  // namespace siding
