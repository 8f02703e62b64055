// What a program of this benchmark has done, noted ten times a second as lines of time and count.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static FILE* open_notes(const char* path) {
  FILE* notes = fopen(path, "w");
  if (notes == NULL) {
    perror(path);
    exit(1);
  }
  return notes;
}

static void note(FILE* notes, uint64_t done) {
  static double noted = 0;
  const double now = seconds();
  if (now - noted < 0.1) return;
  noted = now;
  fprintf(notes, "%.6f %llu\n", now, (unsigned long long)done);
  fflush(notes);
}
