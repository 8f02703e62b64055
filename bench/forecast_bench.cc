// What does "when is it back?" cost at most? Makes clusters of a thousand nodes with ten thousand jobs, as
// the engine hands them over, and prints the CPU time that the forecast takes, which runs outside of the
// engine's lock, and of how many of those that wait it knows a time.
//
//   forecast_bench [ROUNDS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "controller/engine/decide/return_forecasts.h"

namespace {

using siding::BackKind;
using siding::Duration;
using siding::ForecastTask;
using siding::JobId;
using siding::NodeId;
using siding::Resources;
using siding::Time;
using std::chrono::seconds;

constexpr int kNodes = 1000;
constexpr int kSlots = 10;
const Time kNow{seconds(1'000'000)};

struct World {
  const char* name;
  int running;   // of one slot each
  int made_way;  // of which each third is frozen, and each third has four whole nodes
  int queued;
  bool walltimes;
};

class Maker {
 public:
  explicit Maker(const World& world) : world_(world) {
    task_.basis.now = kNow;
    for (int n = 0; n < kNodes; ++n) task_.basis.room[Node(n)] = Resources{kSlots, siding::Bytes{0}, 0};
    task_.basis.capacities = task_.basis.room;
  }

  ForecastTask Make() {
    for (int i = 0; i < world_.running; ++i) Run(Node(i % kNodes), Resources{1, siding::Bytes{0}, 0}, false);
    for (int i = 0; i < world_.made_way; ++i) MakeWay(i);
    for (int i = 0; i < world_.queued; ++i) {
      siding::Waiter waiter = Waiting(1, Resources{1 + Draw(0, 3), siding::Bytes{0}, 0});
      Queue(waiter);
      task_.basis.waiters.push_back(std::move(waiter));
    }
    return std::move(task_);
  }

 private:
  static NodeId Node(int n) { return NodeId("n" + std::to_string(n)); }
  int Draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  void Run(const NodeId& node, Resources per_node, bool request) {
    task_.basis.room[node] -= per_node;
    siding::Holding holding{JobId(++last_), {node}, per_node, {}, request};
    if (world_.walltimes || request) {
      const Time until = kNow + Duration(seconds(1)) * Draw(1, 86'400);
      holding.until = {until, until, BackKind::kWalltime};
    }
    task_.basis.held.push_back(std::move(holding));
  }

  siding::Waiter Waiting(int nodes, Resources per_node) {
    siding::Waiter waiter;
    waiter.job.id = JobId(++last_);
    waiter.job.priority = Draw(0, 3);
    waiter.job.stopped = kNow - Duration(seconds(1)) * Draw(0, 3600);
    waiter.job.nodes = nodes;
    waiter.job.per_node = per_node;
    if (world_.walltimes) {
      const Duration stay = Duration(seconds(1)) * Draw(600, 86'400);
      waiter.stays = {stay, stay, BackKind::kWalltime};
    }
    return waiter;
  }

  void Queue(const siding::Waiter& waiter) {
    siding::Waiting waiting{waiter.job.id, waiter.job.priority, kNow, waiter.job.nodes, waiter.job.per_node};
    waiting.only_on = waiter.job.tied_to;
    if (!waiter.made_way && waiter.stays.latest) waiting.at_most = *waiter.stays.latest;
    task_.queue.push_back(std::move(waiting));
  }

  void MakeWay(int i) {
    const bool gang = i % 3 == 2;
    siding::Waiter waiter = Waiting(gang ? 4 : 1, Resources{gang ? kSlots : 2, siding::Bytes{0}, 0});
    waiter.made_way = true;
    if (i % 3 == 0) {
      const NodeId node = Node(Draw(0, kNodes - 1));
      task_.basis.room[node] -= waiter.job.per_node;
      Run(node, waiter.job.per_node, true);
      waiter.job.frozen_on = {node};
    } else {
      Queue(waiter);
    }
    task_.basis.waiters.push_back(std::move(waiter));
  }

  const World world_;
  std::mt19937 random_{1};
  int64_t last_ = 0;
  ForecastTask task_;
};

void Measure(const World& world, int rounds) {
  std::vector<double> ms;
  size_t waits = 0, known = 0, too_much = 0;
  for (int round = 0; round < rounds; ++round) {
    ForecastTask task = Maker(world).Make();
    const std::clock_t began = std::clock();
    const auto backs = siding::MakeForecast(std::move(task));
    ms.push_back(1000.0 * static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
    waits = backs.size();
    known = too_much = 0;
    for (const auto& [id, back] : backs) {
      known += back.predicted.has_value();
      too_much += back.because.kind == BackKind::kTooMuch;
    }
  }
  std::sort(ms.begin(), ms.end());
  std::printf("%-52s %8.0f ms %8.0f ms %7zu %7zu %7zu\n", world.name, ms[ms.size() / 2], ms.back(), waits,
              known, too_much);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  std::printf("%d nodes with %d slots, %d rounds\n", kNodes, kSlots, rounds);
  std::printf("%-52s %11s %11s %7s %7s %7s\n", "cluster", "median", "slowest", "wait", "known", "left out");
  for (const World& world :
       {World{"9000 run, 1000 made way, all with walltimes", 9000, 1000, 0, true},
        World{"9000 run, 1000 made way, without walltimes", 9000, 1000, 0, false},
        World{"10000 run, 60 made way, 10000 queued, walltimes", 10'000, 60, 10'000, true},
        World{"10000 run, 10000 queued, without walltimes", 10'000, 0, 10'000, false},
        World{"nothing runs, 10000 queued, walltimes", 0, 0, 10'000, true}})
    Measure(world, rounds);
}
