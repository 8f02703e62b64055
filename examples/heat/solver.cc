#include "examples/heat/solver.h"

#include <algorithm>
#include <cstdint>

namespace heat {
namespace {

constexpr double kStep = 0.1;  // stable for conductivities up to 1.5

// A plate with warm spots: a hash of the cell's 32 x 32 tile, so that it needs no library whose bits may
// differ.
double Initial(int row, int column) {
  uint32_t x =
      static_cast<uint32_t>(row / 32) * 2654435761u ^ static_cast<uint32_t>(column / 32) * 2246822519u;
  x = (x ^ x >> 15) * 2246822519u;
  return static_cast<double>(x >> 16) / 65536.0;
}

double Conductivity(double t) { return 1.0 + 0.5 * t * t; }

// What flows from `other` to `here`: two half cells in series.
double Flow(double here, double other) {
  const double a = Conductivity(here), b = Conductivity(other);
  return 2.0 * a * b / (a + b) * (other - here);
}

}  // namespace

Block::Block(int size, int first, int last, int halo)
    : size_(size),
      first_(first),
      last_(last),
      low_(std::max(0, first - halo)),
      high_(std::min(size, last + halo)),
      now_(static_cast<size_t>(high_ - low_) * static_cast<size_t>(size)) {
  for (int row = low_; row < high_; ++row) {
    for (int column = 0; column < size; ++column) Row(row)[column] = Initial(row, column);
  }
  next_ = now_;  // the plate's edge keeps its temperature: no step writes it
}

void Block::Step(int remaining) {
  const int begin = std::max(first_ - remaining, 1);
  const int end = std::min(last_ + remaining, size_ - 1);
#pragma omp parallel for schedule(static)
  for (int row = begin; row < end; ++row) {
    const double* above = Row(row - 1);
    const double* here = Row(row);
    const double* below = Row(row + 1);
    double* out = &next_[static_cast<size_t>(row - low_) * static_cast<size_t>(size_)];
    for (int column = 1; column < size_ - 1; ++column) {
      const double t = here[column];
      const double gain = (Flow(t, above[column]) + Flow(t, below[column])) +
                          (Flow(t, here[column - 1]) + Flow(t, here[column + 1]));
      out[column] = t + kStep * gain;
    }
  }
  now_.swap(next_);
}

double Block::Mean() const {
  double sum = 0;
  for (int row = first_; row < last_; ++row) {
    for (int column = 0; column < size_; ++column) sum += Row(row)[column];
  }
  return sum / (static_cast<double>(last_ - first_) * size_);
}

}  // namespace heat
