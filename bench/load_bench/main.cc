// Does the controller keep up with a large cluster for long? A real sidingd and, in this process, a thousand
// simulated agents whose connections break and come back, ten thousand jobs that end and are followed by
// others, requests with deadlines, users who list and submit, and watchers. Prints every 30 s and at the end
// what the controller used and how long its answers took. docs/results/load.md says what is to come out.
//
//   load_bench [--minutes 10] [--agents 1000] [--jobs 10000] [--watchers 50] [--submissions 20]
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include "bench/load_bench/callers.h"
#include "bench/load_bench/disk_probe.h"
#include "bench/load_bench/latencies.h"
#include "bench/load_bench/tally.h"
#include "bench/load_bench/watchers.h"
#include "bench/simulated/controller_process.h"
#include "bench/simulated/fleet.h"
#include "common/clock.h"

namespace siding {
namespace {

constexpr int kSlots = 9;
constexpr double kRanksPerJob = 1.1;  // one in ten is a gang of two
constexpr int kUsers = 50;
constexpr int kOperatorsPerTen = 6;  // of the watchers; they see every event, users see their own
constexpr auto kGrain = std::chrono::milliseconds(5);
constexpr Duration kReportEvery = std::chrono::seconds(30);
constexpr Duration kReplaceEvery = std::chrono::seconds(20);
constexpr Duration kStartPatience = std::chrono::seconds(60);

// Interrupted: everything is ended and removed, and what there is so far is printed.
std::atomic<bool> stop{false};

struct Options {
  double minutes = 10;
  int agents = 1000, jobs = 10000, watchers = 50;
  double reconnecting = 0.01;  // of the agents, a second
  CallRates rates;
  std::string sidingd;
  std::vector<std::string> sidingd_arguments;
};

FleetOptions FleetOf(const Options& options, const std::string& socket) {
  FleetOptions fleet;
  fleet.socket = socket;
  fleet.agents = options.agents;
  fleet.reconnects_per_second = options.reconnecting * options.agents;
  fleet.node.slots = kSlots;
  SimulatedTiming& timing = fleet.node.timing;
  timing.launch = std::chrono::milliseconds(300);
  timing.freeze = std::chrono::milliseconds(50);
  timing.bytes_per_second = 1e9;
  // As many jobs end as are submitted, when all slots are in use.
  const double running = std::min<double>(options.jobs, options.agents * kSlots / kRanksPerJob);
  if (options.rates.submit > 0) timing.mean_run = FromSeconds(running / options.rates.submit);
  return fleet;
}

// What is compared over time.
struct Sample {
  Time at;
  double resident = 0, cpu = 0, own_cpu = 0;
  Tally::Numbers numbers;
};

class Load {
 public:
  explicit Load(const Options& options)
      : options_(options),
        controller_(options.sidingd, options.sidingd_arguments),
        watchers_(controller_.socket(), tally_, lags_) {}

  absl::Status Run() {
    if (!Await([&] { return std::filesystem::exists(controller_.socket()); }))
      return absl::UnavailableError("sidingd does not listen; its log is " + controller_.log());
    fleet_.emplace(FleetOf(options_, controller_.socket()));
    callers_.emplace(*fleet_, tally_, latencies_);
    if (auto status = callers_->Connect(controller_.socket(), kUsers); !status.ok()) return status;
    if (!Await([&] { return fleet_->Welcomed() >= options_.agents * 9 / 10; }))
      return absl::UnavailableError("the agents were not welcomed");
    for (int i = 0; i < options_.watchers; ++i) {
      const bool is_operator = i % 10 < kOperatorsPerTen;
      if (auto status = watchers_.Add(Callers::UidOf(is_operator ? 0 : i % kUsers + 1)); !status.ok())
        return status;
    }
    const Time began = SystemClock().Now();
    callers_->Fill(options_.jobs, stop);
    std::printf(
        "%d agents, %d jobs submitted in %.1f s, %d watchers; then %.0f %% of the agents reconnect and "
        "%.0f jobs are submitted a second\n",
        options_.agents, options_.jobs, ToSeconds(SystemClock().Now() - began), options_.watchers,
        100 * options_.reconnecting, options_.rates.submit);
    return Steady();
  }

 private:
  template <class Condition>
  bool Await(Condition condition) {
    const Time end = SystemClock().Now() + kStartPatience;
    while (!condition()) {
      if (stop || SystemClock().Now() > end || !controller_.IsRunning()) return false;
      std::this_thread::sleep_for(kGrain);
    }
    return true;
  }

  absl::Status Steady() {
    const Time begin = SystemClock().Now(), end = begin + FromSeconds(60 * options_.minutes);
    const Time settled = begin + std::min<Duration>(std::chrono::minutes(1), (end - begin) / 4);
    Time report = begin + kReportEvery, replace = begin + kReplaceEvery;
    callers_->Begin(options_.rates, kSlots, begin);
    probe_.emplace(controller_.folder(), "a page written and synced", disk_);
    PrintHead();
    Sample last = Take();
    std::optional<Sample> early;
    for (Time now = begin; now < end && !stop; now = SystemClock().Now()) {
      if (!controller_.IsRunning()) return absl::AbortedError("sidingd has ended");
      callers_->CallWhatIsDue(now);
      if (now >= settled && !early) early = Take();
      if (now >= replace) {
        replace += kReplaceEvery;
        if (auto status = watchers_.ReplaceOne(); !status.ok()) return status;
      }
      if (now >= report) {
        report += kReportEvery;
        last = PrintSince(last, begin);
      }
      std::this_thread::sleep_for(kGrain);
    }
    last = PrintSince(last, begin);
    PrintLatencies();
    PrintGrowth(early.value_or(last), last);
    return absl::OkStatus();
  }

  Sample Take() const {
    const Time now = SystemClock().Now();
    return {now, controller_.ResidentMiB(), controller_.CpuSeconds(), CpuSecondsOf(getpid()), tally_.At(now)};
  }

  static void PrintHead() {
    std::printf("%6s %9s %6s %6s %8s %8s %8s %7s %7s %7s %6s %6s %6s %6s %8s %8s\n", "time", "RSS", "CPU",
                "own", "submit", "ended", "events", "preempt", "images", "reconn", "met", "late", "refuse",
                "lost", "silent", "journal");
  }

  Sample PrintSince(const Sample& last, Time begin) const {
    const Sample now = Take();
    const double passed = std::max(1e-3, ToSeconds(now.at - last.at));
    const Tally::Numbers& n = now.numbers;
    std::printf(
        "%4.0f s %5.0f MiB %4.0f %% %4.0f %% %8ld %8ld %8ld %7ld %7ld %7ld %6ld %6ld %6ld %6ld %8ld %4.0f "
        "MiB\n",
        ToSeconds(now.at - begin), now.resident, 100 * (now.cpu - last.cpu) / passed,
        100 * (now.own_cpu - last.own_cpu) / passed, n.submitted, n.ended, n.events, n.preemptions,
        n.checkpoints, fleet_->reconnections(), n.met, n.late, n.refused, callers_->taken_for_lost(),
        callers_->missed_heartbeats(), controller_.JournalMiB());
    std::fflush(stdout);
    return now;
  }

  void PrintLatencies() const {
    std::printf("%-32s %9s %7s %9s %9s %9s %9s\n", "milliseconds", "count", "failed", "p50", "p90", "p99",
                "max");
    std::vector<Latencies::Row> rows = latencies_.Rows();
    rows.push_back(lags_.Rows().front());
    rows.push_back(disk_.Rows().front());
    for (const Latencies::Row& row : rows)
      std::printf("%-32s %9zu %7zu %9.1f %9.1f %9.1f %9.1f\n", row.what.c_str(), row.count, row.failed,
                  row.p50, row.p90, row.p99, row.max);
  }

  void PrintGrowth(const Sample& early, const Sample& end) const {
    const double mib = end.resident - early.resident;
    const auto ended = static_cast<double>(end.numbers.ended - early.numbers.ended);
    std::printf(
        "memory %.0f MiB at %.0f s before the end, %.0f MiB at the end: %+.1f MiB, %.2f KiB for each job "
        "that "
        "ended; %d threads, %d descriptors; watchers received %ld events, %ld streams were cut off\n",
        early.resident, ToSeconds(end.at - early.at), end.resident, mib, ended > 0 ? 1024 * mib / ended : 0,
        controller_.Threads(), controller_.Descriptors(), watchers_.received(), watchers_.lost());
  }

  const Options options_;
  ControllerProcess controller_;
  Tally tally_;
  Latencies latencies_;  // of calls
  Latencies lags_;       // of events, until a watcher has them
  Latencies disk_;       // of the disk that the journal is on, beside it
  std::optional<DiskProbe> probe_;
  Watchers watchers_;
  std::optional<Fleet> fleet_;
  std::optional<Callers> callers_;
};

int Main(int argc, char** argv) {
  CLI::App app("The controller under the load of a large cluster");
  Options options;
  options.sidingd = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sidingd";
  app.add_option("--minutes", options.minutes)->check(CLI::Range(0.1, 10000.0))->capture_default_str();
  app.add_option("--agents", options.agents)->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--jobs", options.jobs, "that run or wait")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_option("--watchers", options.watchers)->check(CLI::Range(1, 500))->capture_default_str();
  app.add_option("--reconnecting", options.reconnecting, "part of the agents, a second")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--submissions", options.rates.submit, "a second")->check(CLI::Range(0.0, 1e5));
  app.add_option("--requests", options.rates.request, "with deadlines, a second")
      ->check(CLI::Range(0.0, 1e3));
  app.add_option("--sidingd", options.sidingd)->capture_default_str();
  app.add_option("arguments", options.sidingd_arguments, "more arguments for sidingd, after --");
  CLI11_PARSE(app, argc, argv);
  if (geteuid() != 0) {
    std::fprintf(stderr, "load_bench: needs root, to call as several users\n");
    return 1;
  }
  signal(SIGINT, [](int) { stop = true; });
  signal(SIGTERM, [](int) { stop = true; });
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  options.sidingd_arguments.insert(options.sidingd_arguments.end(), {"--log-level", "warning"});
  const absl::Status status = Load(options).Run();
  if (!status.ok()) std::fprintf(stderr, "load_bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) { return siding::Main(argc, argv); }
