// How long a controller that starts again replays its journal, and how large that is, before and after the
// jobs that ended long ago have been forgotten and their events removed.
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <vector>

#include "controller/engine/state/cluster_state.h"
#include "controller/journal/journal.h"

namespace siding {
namespace {

// Of this process: what the machine does beside it does not count.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "journal_bench: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}
void Must(const absl::Status& status) {
  if (!status.ok()) Fail(status);
}
std::unique_ptr<Journal> Open(const std::string& path) {
  auto journal = OpenSqliteJournal(path);
  if (!journal.ok()) Fail(journal.status());
  return *std::move(journal);
}

// Makes events in the order of a controller's, and keeps the state that they lead to.
class Writer {
 public:
  explicit Writer(Journal& journal) : journal_(journal) {}
  void Add(JobId job, EventBody body) {
    batch_.push_back(
        {state_.last_seq + 1, FromMicros(1'700'000'000'000'000 + state_.last_seq), job, std::move(body)});
    Apply(state_, batch_.back());
  }
  void Add(JobId job, JobEvent event) {
    JobMoved move;
    move.event = event;
    move.nodes = {NodeId("node0001")};
    Add(job, move);
  }
  // One that the journal has already.
  void Replay(const Event& event) { Apply(state_, event); }
  void Flush() {
    Must(journal_.Append(batch_));
    batch_.clear();
  }
  const ClusterState& state() const { return state_; }

 private:
  Journal& journal_;
  ClusterState state_;
  std::vector<Event> batch_;
};

// With an environment such as a login shell has.
JobSpec Spec() {
  JobSpec spec;
  spec.name = "train";
  spec.user = "ada";
  spec.command = {"python3", "train.py", "--epochs", "90"};
  spec.methods = {Method::kSuspend, Method::kCheckpoint};
  for (int i = 0; i < 30; ++i) spec.env["VARIABLE_" + std::to_string(i)] = std::string(40, 'v');
  return spec;
}

// The whole life of one job that ended: eight events.
void Live(Writer& writer, JobId id, const JobSpec& spec) {
  writer.Add(id, JobSubmitted{spec});
  writer.Add(id, JobEvent::kPlace);
  writer.Add(id, JobEvent::kStarted);
  writer.Add(id, JobEvent::kOrderSuspend);
  writer.Add(id, JobEvent::kFrozen);
  writer.Add(id, JobEvent::kOrderResume);
  writer.Add(id, JobEvent::kThawed);
  writer.Add(id, JobEvent::kSucceeded);
}

void Forget(Writer& writer, int64_t from, int64_t to) {
  constexpr int64_t kAtOnce = 500;
  for (int64_t first = from; first < to; first += kAtOnce) {
    JobsForgotten forgotten;
    for (int64_t id = first; id < std::min(to, first + kAtOnce); ++id) forgotten.jobs.emplace_back(id);
    forgotten.last_job = writer.state().last_job;
    writer.Add(JobId(), forgotten);
  }
  writer.Flush();
}

void Report(const std::string& when, const std::string& path) {
  const double begin = CpuSeconds();
  const auto journal = Open(path);
  const double opened = CpuSeconds() - begin;
  ClusterState state;
  int64_t events = 0;
  Must(journal->Replay([&](const Event& event) {
    Apply(state, event);
    ++events;
  }));
  std::printf("%-8s %8zu jobs %9lld events %8.1f MiB   open %6.2f s   replay %6.2f s\n", when.c_str(),
              state.jobs.size(), static_cast<long long>(events),
              static_cast<double>(std::filesystem::file_size(path)) / (1 << 20), opened,
              CpuSeconds() - begin - opened);
}

void Compact(const std::string& path) {
  const auto journal = Open(path);
  Must(journal->Replay([](const Event&) {}));
  int steps = 0;
  double longest = 0;
  const double begin = CpuSeconds();
  for (bool more = true; more; ++steps) {
    const double step = CpuSeconds();
    const auto done = journal->Compact();
    Must(done.status());
    more = *done;
    longest = std::max(longest, CpuSeconds() - step);
  }
  std::printf("compaction: %d steps, %.1f s in all, the longest %.0f ms\n", steps, CpuSeconds() - begin,
              longest * 1e3);
}

void Run(int64_t jobs, int64_t keep) {
  char name[] = "/tmp/siding-journal-bench-XXXXXX";
  const std::filesystem::path folder = mkdtemp(name);
  const std::string path = folder / "journal.db";
  {
    const auto journal = Open(path);
    Writer writer(*journal);
    const JobSpec spec = Spec();
    for (int64_t id = 1; id <= jobs; ++id) {
      Live(writer, JobId(id), spec);
      if (id % 1000 == 0) writer.Flush();
    }
    writer.Flush();
    std::printf("%lld jobs have ended, %lld are kept\n", static_cast<long long>(jobs),
                static_cast<long long>(keep));
  }
  Report("before", path);
  {
    const auto journal = Open(path);
    Writer writer(*journal);
    Must(journal->Replay([&](const Event& event) { writer.Replay(event); }));
    Forget(writer, 1, jobs - keep + 1);
  }
  Compact(path);
  Report("after", path);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) {
  const long long jobs = argc > 1 ? std::atoll(argv[1]) : 100000;
  siding::Run(jobs, argc > 2 ? std::atoll(argv[2]) : jobs / 20);
}
