// What the ranks of a gang tell each other. The solver knows only this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace heat {

// Rows beside a block, either a rank's own that its neighbours need or theirs. Empty: there is no neighbour.
struct Halo {
  std::vector<double> above, below;
};

// All ranks call the same functions in the same order. These throw std::runtime_error if the others cannot be
// reached or say something else.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Gives the neighbours `own`, and waits for as many rows of theirs. `number` counts the exchanges from 0.
  virtual Halo Swap(int64_t number, const Halo& own) = 0;
  // Once, at the end: every other rank gives rank 0 its block, and rank 0 takes that of each.
  virtual void GiveBlock(const std::vector<double>& block) = 0;
  virtual std::vector<double> TakeBlock(int from, size_t count) = 0;
};

}  // namespace heat
