/* An MPI program whose result depends on every step of every rank: a token goes round N times, or until a
 * file is there, and each rank adds to it and to a sum over all of the memory that it holds. Rank 0 writes a
 * line per round, and the sums at the end.
 *
 *   ring ROUNDS | ring FILE */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kCells = 1 << 20 };

int main(int argc, char** argv) {
  const int rounds = atoi(argv[1]);
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  long* const cells = calloc(kCells, sizeof *cells);
  long message[2] = {0, 0}; /* the token, and whether this round is the last */
  for (int round = 0; !message[1]; ++round) {
    if (rank > 0) MPI_Recv(message, 2, MPI_LONG, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) message[1] = rounds > 0 ? round == rounds - 1 : access(argv[1], F_OK) == 0;
    message[0] = (message[0] * 31 + rank + round) % 1000003;
    cells[(message[0] * 7919) % kCells] += message[0];
    MPI_Send(message, 2, MPI_LONG, (rank + 1) % size, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      MPI_Recv(message, 2, MPI_LONG, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      printf("%d\n", round);
      fflush(stdout);
      usleep(20000);
    }
  }
  long sum = 0, total = 0;
  for (int i = 0; i < kCells; ++i) sum += cells[i];
  MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("token %ld sum %ld\n", message[0], total);
  MPI_Finalize();
  return 0;
}
