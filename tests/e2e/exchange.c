/* An MPI program whose ranks exchange bytes that nobody else would send, and check each one: in a round a
 * long message goes to the next rank while one comes from the one before, all sum up a number, and each sends
 * a block to each other one. Rank 0 writes the round's number. The rounds end when there is a file GATE: rank
 * 0 then writes "done", or, with the further arguments, rank RANK ends with CODE in the middle of the
 * exchange.
 *
 *   exchange GATE [RANK CODE] */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kLong = 100000, kBlock = 3000 };

static int me, ranks;

/* Byte `at` of what `sender` sends to `receiver` in the round. */
static unsigned char Byte(int round, int sender, int receiver, int at) {
  uint64_t x =
      ((uint64_t)round << 32 | (uint64_t)(sender << 8 | receiver) << 20 | (uint64_t)at) + 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return (unsigned char)(x ^ x >> 31);
}

static void Write(unsigned char* bytes, int size, int round, int receiver) {
  for (int i = 0; i < size; ++i) bytes[i] = Byte(round, me, receiver, i);
}

static void Check(const unsigned char* bytes, int size, int round, int sender) {
  for (int i = 0; i < size; ++i) {
    if (bytes[i] == Byte(round, sender, me, i)) continue;
    printf("rank %d, round %d: byte %d of %d from rank %d is not what it has sent\n", me, round, i, size,
           sender);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 9);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
  unsigned char* const out = malloc(kLong + (size_t)ranks * kBlock);
  unsigned char* const in = malloc(kLong + (size_t)ranks * kBlock);
  int last = 0;
  for (int round = 0; !last; ++round) {
    MPI_Request requests[2];
    Write(out, kLong, round, next);
    MPI_Irecv(in, kLong, MPI_BYTE, before, round % 1000, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, kLong, MPI_BYTE, next, round % 1000, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    Check(in, kLong, round, before);

    int told = me == 0 && access(argv[1], F_OK) == 0;
    long mine[2] = {told, (long)round * 1000 + me}, sums[2];
    MPI_Allreduce(mine, sums, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    last = sums[0] != 0;
    if (sums[1] != (long)round * 1000 * ranks + (long)ranks * (ranks - 1) / 2) {
      printf("rank %d, round %d: the sum is %ld\n", me, round, sums[1]);
      fflush(stdout);
      MPI_Abort(MPI_COMM_WORLD, 9);
    }
    if (last && argc > 3 && me == atoi(argv[2])) exit(atoi(argv[3]));

    for (int rank = 0; rank < ranks; ++rank) Write(out + (size_t)rank * kBlock, kBlock, round, rank);
    MPI_Alltoall(out, kBlock, MPI_BYTE, in, kBlock, MPI_BYTE, MPI_COMM_WORLD);
    for (int rank = 0; rank < ranks; ++rank) Check(in + (size_t)rank * kBlock, kBlock, round, rank);
    if (me == 0) {
      printf("%d\n", round);
      fflush(stdout);
    }
    usleep(5000);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (me == 0) printf("done\n");
  MPI_Finalize();
  return 0;
}
