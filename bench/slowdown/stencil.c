// A stencil over two grids that hold 512 MiB together, all of it rewritten all the time, on all cores.
// Arguments: where to note how many rows.
#include "notes.h"

enum { kSide = 5793 };  // two grids of so many squared doubles

int main(int argc, char** argv) {
  (void)argc;
  FILE* notes = open_notes(argv[1]);
  double* from = malloc(sizeof(double) * kSide * kSide);
  double* to = malloc(sizeof(double) * kSide * kSide);
  for (size_t i = 0; i < (size_t)kSide * kSide; ++i) from[i] = to[i] = (double)(i % 1000);
  const size_t block = 100;
  for (uint64_t done = 0;;) {
    for (size_t begin = 1; begin < kSide - 1; begin += block) {
      const size_t end = begin + block < kSide - 1 ? begin + block : kSide - 1;
#pragma omp parallel for
      for (size_t row = begin; row < end; ++row) {
        for (size_t i = row * kSide + 1; i < (row + 1) * kSide - 1; ++i)
          to[i] = 0.25 * (from[i - 1] + from[i + 1] + from[i - kSide] + from[i + kSide]);
      }
      done += end - begin;
      note(notes, done);
    }
    double* swap = from;
    from = to;
    to = swap;
  }
}
