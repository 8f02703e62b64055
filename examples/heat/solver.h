// Heat flow on a square plate whose conductivity depends on the temperature, by explicit steps.
//
// Every cell is computed from its neighbours alone by +, * and / in a fixed order, without reductions, so the
// result has the same bits for every number of threads and for every way of cutting the plate into blocks of
// rows.
#pragma once

#include <cstddef>
#include <vector>

namespace heat {

// The rows [first, last) of a plate of size x size cells, and up to `halo` more rows on either side that
// belong to neighbours. With a halo of k rows, k steps can be made between two exchanges: the rows that are
// right shrink by one on each side at every step.
class Block {
 public:
  Block(int size, int first, int last, int halo);

  // One step; `remaining` more can follow before the next exchange, which is how many halo rows are still
  // needed.
  void Step(int remaining);

  int size() const { return size_; }
  int first() const { return first_; }
  int last() const { return last_; }
  double* Row(int row) { return &now_[static_cast<size_t>(row - low_) * static_cast<size_t>(size_)]; }
  const double* Row(int row) const { return const_cast<Block*>(this)->Row(row); }
  double Mean() const;

 private:
  const int size_, first_, last_;
  const int low_, high_;  // rows held, halo included
  std::vector<double> now_, next_;
};

}  // namespace heat
