// Ordinary device memory: buffers from half of the whole down to a few words, rewritten through a table of
// their addresses that lies in device memory itself, and one global variable. Each step copies some words of
// one buffer to the host; every tenth step allocates one again.
#include "tests/gpu/jobs/job.cuh"
#include "tests/gpu/jobs/options.h"

namespace {

constexpr int kBuffers = 16, kPasses = 32, kStepsPerNew = 10;

__device__ Word steps_seen = 0;

__global__ void RewriteAll(const Words* table, Word round) {
  for (int b = 0; b < kBuffers; ++b) RewriteWords(table[b], round, kPasses);
  if (FirstIndex() == 0) steps_seen = NextWord(steps_seen, 0, round);
}

class Buffers {
 public:
  explicit Buffers(std::size_t words) {
    // Odd, so that no allocation ends where a page does.
    for (int b = 0; b < kBuffers; ++b) buffers_[b] = New((words >> (b + 1)) | 1, b);
    CHECK(cudaMalloc(&table_, sizeof(buffers_)));
    PutTable();
  }

  // The old one goes last, so that the new one is at another address.
  void Renew(int b, Word seed) {
    Words old = buffers_[b];
    buffers_[b] = New(old.n, seed);
    CHECK(cudaFree(old.at));
    PutTable();
  }

  void Rewrite(Word round) {
    RewriteAll<<<kBlocks, kThreads>>>(table_, round);
    CHECK(cudaGetLastError());
  }

  void AddHead(int b, Digest& digest) const {
    digest.AddDevice({buffers_[b].at, std::min(buffers_[b].n, kWordsPerMib)});
  }

  void AddAll(Digest& digest) const {
    for (const Words& buffer : buffers_) digest.AddDevice(buffer);
    Word seen = 0;
    CHECK(cudaMemcpyFromSymbol(&seen, steps_seen, sizeof(seen)));
    digest.Add(seen);
  }

  void Free() {
    for (Words& buffer : buffers_) CHECK(cudaFree(buffer.at));
    CHECK(cudaFree(table_));
  }

 private:
  static Words New(std::size_t n, Word seed) {
    Words words{nullptr, n};
    CHECK(cudaMalloc(&words.at, words.bytes()));
    CHECK(Fill(words, seed));
    return words;
  }

  void PutTable() { CHECK(cudaMemcpy(table_, buffers_, sizeof(buffers_), cudaMemcpyHostToDevice)); }

  Words buffers_[kBuffers];
  Words* table_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  int steps = 100, mib = 256, pause_ms = 20;
  ParseOptions(argc, argv,
               {{"steps", &steps, 0, "steps to take"},
                {"mib", &mib, 1, "MiB of device memory, and half as much again at times"},
                {"pause-ms", &pause_ms, 0, "milliseconds between steps"}});
  Buffers buffers(mib * kWordsPerMib);
  Digest digest;
  for (int step = 1; step <= steps; ++step) {
    const int chosen = step % kBuffers;
    if (step % kStepsPerNew == 0) buffers.Renew(chosen, digest.value());
    buffers.Rewrite(step);
    buffers.AddHead(chosen, digest);
    ReportStep(step, steps, digest.value());
    Pause(pause_ms);
  }
  buffers.AddAll(digest);
  buffers.Free();
  ReportDigest(digest);
  return 0;
}
