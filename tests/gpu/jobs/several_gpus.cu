// One process that uses every GPU it sees, or the one: each step rewrites each GPU's state and then works
// into it what its neighbour had, which goes by way of the host. The digest depends on how many GPUs there
// are.
#include "tests/gpu/jobs/job.cuh"
#include "tests/gpu/jobs/options.h"

namespace {

constexpr int kPasses = 32;

struct Gpu {
  int number;
  Words state, received;
  std::vector<Word> sent;  // on the host

  Gpu(int number, std::size_t n) : number(number), state{nullptr, n}, received{nullptr, n}, sent(n) {
    CHECK(cudaSetDevice(number));
    CHECK(cudaMalloc(&state.at, state.bytes()));
    CHECK(cudaMalloc(&received.at, received.bytes()));
    CHECK(Fill(state, number));
  }

  void StartRewrite(Word round) const {
    CHECK(cudaSetDevice(number));
    CHECK(Rewrite(state, round, kPasses));
  }

  void Send() {
    CHECK(cudaSetDevice(number));
    CHECK(cudaMemcpy(sent.data(), state.at, state.bytes(), cudaMemcpyDeviceToHost));
  }

  void Receive(const Gpu& from) const {
    CHECK(cudaSetDevice(number));
    CHECK(cudaMemcpy(received.at, from.sent.data(), received.bytes(), cudaMemcpyHostToDevice));
    CHECK(Blend(state, state, received));
  }

  void AddTo(Digest& digest) const {
    CHECK(cudaSetDevice(number));
    digest.AddDevice(state);
    digest.AddDevice(received);
  }

  void Free() const {
    CHECK(cudaSetDevice(number));
    CHECK(cudaFree(state.at));
    CHECK(cudaFree(received.at));
  }
};

}  // namespace

int main(int argc, char** argv) {
  int steps = 100, mib = 64, most_gpus = 0, pause_ms = 20;
  ParseOptions(argc, argv,
               {{"steps", &steps, 0, "steps to take"},
                {"gpus", &most_gpus, 0, "use no more GPUs than this; 0: all that are visible"},
                {"mib", &mib, 1, "MiB of each GPU's memory"},
                {"pause-ms", &pause_ms, 0, "milliseconds between steps"}});
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  if (most_gpus != 0) count = std::min(count, most_gpus);
  std::vector<Gpu> gpus;
  for (int i = 0; i < count; ++i) gpus.emplace_back(i, mib * kWordsPerMib / 2);
  Digest digest;
  for (int step = 1; step <= steps; ++step) {
    for (const Gpu& gpu : gpus) gpu.StartRewrite(step);
    for (Gpu& gpu : gpus) gpu.Send();
    for (int i = 0; i < count; ++i) gpus[i].Receive(gpus[(i + count - 1) % count]);
    for (const Gpu& gpu : gpus) digest.Add(gpu.sent[step % gpu.sent.size()]);
    ReportStep(step, steps, digest.value());
    Pause(pause_ms);
  }
  for (const Gpu& gpu : gpus) {
    gpu.AddTo(digest);
    gpu.Free();
  }
  ReportDigest(digest);
  return 0;
}
