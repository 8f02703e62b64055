#include "bench/milp/milp.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "planner/options.h"

namespace siding {
namespace {

// Larger than what jobs hold on one node, in MiB; not much larger, as CBC compares with a tolerance.
constexpr double kMuch = 1e5;

double MiB(Bytes bytes) { return static_cast<double>(bytes.value) / (1 << 20); }

// One way for a job to leave: the binary variable x<job>_<option>.
struct Way {
  const Candidate* candidate = nullptr;
  const Option* option = nullptr;
  std::string name;
  int steps = 0;
};

class Program {
 public:
  Program(const Snapshot& snapshot, const Request& request, const Policy& policy)
      : snapshot_(snapshot),
        request_(request),
        policy_(policy),
        within_(request.start_by - policy.margin - snapshot.now),
        candidates_(MakeCandidates(snapshot, request, policy)) {
    const double bytes = snapshot.shared.bytes_per_second * ToSeconds(within_) -
                         static_cast<double>(snapshot.shared.in_flight.value);
    step_ = std::max(0.0, bytes) / policy.budget_steps;
    CollectWays();
  }

  std::string Text() const {
    std::ostringstream out;
    out.precision(15);
    out << "Minimize\n cost: 0 zero";
    for (const Way& way : ways_)
      out << "\n + " << static_cast<double>(way.option->cost_ms) / 1000 << " " << way.name;
    out << "\nSubject To\n";
    OneWayEach(out);
    Nodes(out);
    out << " budget: 0 zero";
    for (const Way& way : ways_) {
      if (way.steps > 0) out << "\n + " << way.steps << " " << way.name;
    }
    out << " <= " << policy_.budget_steps << "\nBounds\n zero = 0\nBinary\n";
    for (const Way& way : ways_) out << " " << way.name << "\n";
    for (size_t n = 0; n < snapshot_.nodes.size(); ++n) {
      if (Eligible(n)) out << " y" << n << "\n";
    }
    out << "End\n";
    return out.str();
  }

 private:
  void CollectWays() {
    for (size_t c = 0; c < candidates_.size(); ++c) {
      for (size_t o = 0; o < candidates_[c].options.size(); ++o) {
        const Option& option = candidates_[c].options[o];
        if (option.migrates || option.early || option.release > within_) continue;
        Way way{&candidates_[c], &option, "x" + std::to_string(c) + "_" + std::to_string(o), 0};
        if (option.shared_bytes > Bytes{0}) {
          if (step_ <= 0) continue;
          way.steps = static_cast<int>(std::ceil(static_cast<double>(option.shared_bytes.value) / step_));
        }
        for (const NodeId& node : candidates_[c].job->nodes)
          on_[node].push_back(static_cast<int>(ways_.size()));
        ways_.push_back(std::move(way));
      }
    }
  }

  bool Eligible(size_t n) const {
    const NodeView& node = snapshot_.nodes[n];
    return node.usable && node.capacity.Covers(request_.per_node);
  }

  void OneWayEach(std::ostream& out) const {
    std::map<const Candidate*, std::string> sums;
    for (const Way& way : ways_) sums[way.candidate] += " + " + way.name;
    int i = 0;
    for (const auto& [candidate, sum] : sums) out << " one" << i++ << ":" << sum << " <= 1\n";
  }

  // Sum over the ways on this node of what `amount` says; then `rest`.
  template <typename Amount>
  void Row(std::ostream& out, const std::string& name, const NodeId& node, Amount amount,
           const std::string& rest) const {
    std::ostringstream sum;
    sum.precision(15);
    if (auto it = on_.find(node); it != on_.end()) {
      for (int w : it->second) {
        const double value = amount(ways_[w], node);
        if (value != 0) sum << "\n + " << value << " " << ways_[w].name;
      }
    }
    out << " " << name << ": 0 zero" << sum.str() << rest << "\n";
  }

  static size_t RankOn(const Way& way, const NodeId& node) {
    const auto& nodes = way.candidate->job->nodes;
    return static_cast<size_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
  }

  Resources FreeByItself(const NodeView& node) const {
    Resources free = node.free;
    for (const JobView& job : snapshot_.jobs) {
      const bool ours = job.releasing_for == JobId() || job.releasing_for == request_.id;
      if (!job.releasing_at || !ours || *job.releasing_at - snapshot_.now > within_) continue;
      for (const NodeId& id : job.nodes) {
        if (id == node.id) free += job.per_node;
      }
    }
    return free;
  }

  void Nodes(std::ostream& out) const {
    std::string need = " need:";
    for (size_t n = 0; n < snapshot_.nodes.size(); ++n) {
      const NodeView& node = snapshot_.nodes[n];
      Limits(out, node, n);
      if (!Eligible(n)) continue;
      need += "\n + y" + std::to_string(n);
      const Resources free = FreeByItself(node);
      if (free.Covers(request_.per_node)) continue;  // whoever leaves
      Room(out, node, n, free);
    }
    out << need << " >= " << request_.nodes << "\n";
  }

  // What holds whether the request gets this node or not.
  void Limits(std::ostream& out, const NodeView& node, size_t n) const {
    if (!on_.contains(node.id)) return;
    const std::string i = std::to_string(n);
    Row(
        out, "disk" + i, node.id,
        [](const Way& w, const NodeId& id) {
          return w.option->to_local_disk ? MiB(w.candidate->job->memory[RankOn(w, id)]) : 0.0;
        },
        " <= " + Number(MiB(node.local_disk_free)));
    for (Tier tier : {Tier::kLocal, Tier::kShared}) {
      Row(
          out, ToString(tier) + i, node.id,
          [&](const Way& w, const NodeId& id) {
            const bool writes = w.option->tier == tier && !w.option->by_rank.empty();
            return writes ? ToSeconds(w.option->by_rank[RankOn(w, id)]) : 0.0;
          },
          " <= " + Number(ToSeconds(within_)));
    }
  }

  // The request has its resources there if y is 1.
  void Room(std::ostream& out, const NodeView& node, size_t n, const Resources& free) const {
    const std::string i = std::to_string(n);
    const auto room = [&](const std::string& name, double wanted, double there, auto amount) {
      Row(out, name + i, node.id, amount, " - " + Number(wanted - there) + " y" + i + " >= 0");
    };
    const Resources& want = request_.per_node;
    room("slots", want.slots, free.slots,
         [](const Way& w, const NodeId&) { return double(w.candidate->job->per_node.slots); });
    if (want.memory > free.memory) {
      room("memory", MiB(want.memory), MiB(free.memory), [](const Way& w, const NodeId&) {
        return w.option->stays_in_ram ? 0.0 : MiB(w.candidate->job->per_node.memory);
      });
    }
    if (want.gpus > free.gpus) {
      room("gpus", want.gpus, free.gpus,
           [](const Way& w, const NodeId&) { return double(w.candidate->job->per_node.gpus); });
    }
    // frozen > 0 and y: frozen + wanted <= available.
    Row(
        out, "ram" + i, node.id,
        [](const Way& w, const NodeId& id) {
          return w.option->stays_in_ram ? MiB(w.candidate->job->memory[RankOn(w, id)]) : 0.0;
        },
        " + " + Number(kMuch) + " y" + i +
            " <= " + Number(kMuch + MiB(node.ram_available) - MiB(want.memory)));
  }

  static std::string Number(double value) {
    std::ostringstream out;
    out.precision(15);
    out << value;
    return out.str();
  }

  const Snapshot& snapshot_;
  const Request& request_;
  const Policy& policy_;
  const Duration within_;
  const std::vector<Candidate> candidates_;
  double step_ = 0;
  std::vector<Way> ways_;
  std::map<NodeId, std::vector<int>> on_;  // indices of ways
};

// "Optimal - objective value 12.5", "Infeasible - objective value 0", "Stopped on time - objective value 13".
void ReadSolution(const std::string& path, MilpAnswer& answer) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  const auto value = line.rfind("value ");
  if (value == std::string::npos) return;
  answer.feasible = line.rfind("Infeasible", 0) != 0 && line.rfind("Integer infeasible", 0) != 0;
  answer.proven = line.rfind("Optimal", 0) == 0 || !answer.feasible;
  answer.cost_seconds = std::stod(line.substr(value + 6));
}

void ReadLog(const std::string& path, MilpAnswer& answer) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    double value = 0;
    if (std::sscanf(line.c_str(), "Lower bound: %lf", &value) == 1) answer.bound_seconds = value;
    if (line.find("is infeasible") != std::string::npos) answer.feasible = false, answer.proven = true;
  }
}

}  // namespace

std::string FindCbc() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/cbc").c_str(), X_OK) == 0) return folder + "/cbc";
  }
  return "";
}

MilpAnswer SolveWithCbc(const Snapshot& snapshot, const Request& request, const Policy& policy, int seconds) {
  char name[] = "/tmp/siding-milp-XXXXXX";
  const std::string folder = mkdtemp(name);
  std::ofstream(folder + "/plan.lp") << Program(snapshot, request, policy).Text();
  const std::string command = FindCbc() + " " + folder + "/plan.lp ratioGap 0 allowableGap 0 sec " +
                              std::to_string(seconds) + " solve solu " + folder + "/solution >" + folder +
                              "/log 2>&1";
  MilpAnswer answer;
  const auto start = std::chrono::steady_clock::now();
  if (std::system(command.c_str()) != 0) {
    std::fprintf(stderr, "cbc failed: %s\n", command.c_str());
    std::abort();
  }
  answer.took_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ReadSolution(folder + "/solution", answer);
  ReadLog(folder + "/log", answer);
  if (answer.proven) answer.bound_seconds = answer.cost_seconds;
  std::filesystem::remove_all(folder);
  return answer;
}

}  // namespace siding
