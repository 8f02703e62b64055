// Writes words at random places of 1 GiB. Arguments: where to note how many; of how many MiB.
#include "notes.h"

int main(int argc, char** argv) {
  FILE* notes = open_notes(argv[1]);
  const uint64_t words = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1024) << 17;
  uint64_t* memory = malloc(words * sizeof *memory);
  for (uint64_t i = 0; i < words; ++i) memory[i] = i;
  uint64_t random = 88172645463325252u;
  for (uint64_t done = 0;;) {
    for (int i = 0; i < 100000; ++i, ++done) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      memory[random % words] += random;
    }
    note(notes, done);
  }
}
