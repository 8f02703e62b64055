#include "sim/image_row.h"

#include <algorithm>
#include <cmath>

namespace siding::sim {
namespace {

// The parents of an image hold no more, of its memory (agent/memory/parent_pages.h), and are no more
// (store/parents.h).
constexpr double kMostStored = 1.5;
constexpr int kMostParents = 8;

}  // namespace

double ImageRow::PlaceOf(double image) const { return std::fmod(image, images); }

double ImageRow::NewSince(double image, double earlier) const {
  const double place = PlaceOf(image);
  // A file is shared or it is not, so a new row shares nothing with the one before.
  return earlier >= image - place ? (image - earlier) * written : 1 + place * written;
}

double ImageRow::MeanNew(double n) const {
  const double places = std::min<double>(n, images);
  const double in_new_row = places / images;
  return in_new_row * (1 + (places - 1) / 2 * written) + (1 - in_new_row) * places * written;
}

ImageRow RowOf(double written_share) {
  // All of it is changed in the end, and a share that is written in decimals is not to be one image more.
  const int longest = kMostParents + 1;
  const double most = written_share > 0 ? std::ceil((kMostStored - 1) / written_share - 1e-9) : longest;
  const bool is_longest = most >= longest;
  return {is_longest ? longest : std::max(1, static_cast<int>(most)), is_longest, written_share};
}

}  // namespace siding::sim
