// Who asks for what, and what goes wrong.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/simulation/kubernetes/world.h"

namespace siding::simulation::pods {

using namespace std::chrono_literals;

namespace {

constexpr Duration kBusy = 110s;  // work comes during this time

const ObjectName& NumbersAt() {
  static const ObjectName kName{"siding", "siding-numbers"};
  return kName;
}
const ObjectName& SealAt() {
  static const ObjectName kName{"siding", "siding-seal"};
  return kName;
}

}  // namespace

void World::DrawTrouble() {
  Random& random = lab_.random;
  network_.latency = random.Between(1ms, 50ms);
  if (random.Chance(0.15)) return;  // nothing at all: promises are kept
  trouble_.calls = random.Chance(0.5);
  trouble_.watches = random.Chance(0.5);
  trouble_.deaths = random.Chance(0.5);
  trouble_.takeovers = random.Chance(0.3);
  trouble_.nodes = random.Chance(0.4);
  trouble_.objects = random.Chance(0.3);
  trouble_.storage = random.Chance(0.2);
  trouble_.users = random.Chance(0.5);
  trouble_.budgets = random.Chance(0.3);
  trouble_.ends = random.Chance(0.4);
  const auto odds = [&](bool there, double most) {
    return there && random.Chance(0.6) ? most * random.Between(1, 10) / 10 : 0;
  };
  CallOdds& calls = network_.odds;
  calls.unreachable = odds(trouble_.calls, 0.1);
  calls.refused = odds(trouble_.calls, 0.1);
  calls.busy = odds(trouble_.calls, 0.1);
  calls.answer_lost = odds(trouble_.calls, 0.1);
  calls.slow = odds(trouble_.calls, 0.03);
  calls.conflict = odds(trouble_.calls, 0.1);
  calls.cut = odds(trouble_.watches, 0.2);
  calls.expired = odds(trouble_.watches, 0.05);
  calls.gone = odds(trouble_.watches, 0.05);
  calls.twice = odds(trouble_.watches, 0.2);
  calls.held = odds(trouble_.watches, 0.02);
  calls.dies_before = odds(trouble_.deaths, 0.02);
  calls.dies_after = odds(trouble_.deaths, 0.02);
  lab_.odds.crash_after_append = odds(trouble_.deaths, 0.03);
  lab_.odds.append_fails = odds(trouble_.storage, 0.03);
  lab_.odds.append_unheard = odds(trouble_.storage, 0.03);
}

// Of clusters whose nodes have agents.
void World::DrawAgents() {
  agents_.Draw(options_.heartbeat);
  kubelets_.on_lost = [this](const std::string& node, bool power, bool gone) {
    agents_.OnLost(node, power, gone);
  };
  kubelets_.on_back = [this](const std::string& node) { agents_.OnBack(node); };
  containers_.on_runs = [this](const Container& container) { lives_of_pods_.OnRuns(container); };
  lab_.on_image = [this](const ImageName& image) { lives_of_pods_.OnImage(image); };
  lab_.on_delete = [this](const ImageName& image) { lives_of_pods_.OnDelete(image); };
  audit_.why_not_evicted = [this](const Json& pod, bool at_once) {
    return lives_of_pods_.WhyNotEvicted(pod, at_once);
  };
  audit_.why_not_deleted = [this](const Json& pod) { return lives_of_pods_.WhyNotDeleted(pod); };
  victims_.makes_progress = [this](const Json& pod) {
    const Container* const container = containers_.Find(UidOf(pod));
    return container != nullptr && container->since.has_value();
  };
  audit_.on_may_go = [this](const Json& pod) { UseUpBudget(pod); };
  audit_.is_heir = [this](const Json& pod, int64_t number) { return lives_of_pods_.IsHeir(pod, number); };
  Random& random = lab_.random;
  if (!trouble_.any()) return;
  trouble_.agents = random.Chance(0.6);
  trouble_.budgets |= random.Chance(0.3);
  const auto odds = [&](bool there, double most) {
    return there && random.Chance(0.5) ? most * random.Between(1, 10) / 10 : 0;
  };
  Odds& all = lab_.odds;
  all.launch_fails = odds(trouble_.agents, 0.1);
  all.restore_fails = odds(trouble_.agents, 0.4);
  all.freeze_fails = odds(trouble_.agents, 0.3);
  all.dump_fails = odds(trouble_.agents, 0.4);
  all.dump_slow = odds(trouble_.agents, 0.3);
  all.image_rots = odds(trouble_.agents, 0.1);
  all.connection_breaks = odds(trouble_.agents, 0.01);
  all.crash_amid_sends = odds(trouble_.deaths, 0.02);
}

void World::DrawPolicy() {
  Random& random = lab_.random;
  Policy& policy = options_.policy;
  policy.margin = 2s;
  policy.budget_steps = 512;
  policy.expected_hold = random.Between(20s, 200s);
  policy.headroom_nodes = random.Chance(0.1) ? 1 : 0;
  policy.when_late = random.OneOf(std::vector{WhenLate::kRefuse, WhenLate::kBestEffort, WhenLate::kQueue});
  options_.heartbeat = random.Between(1s, 5s);
  options_.least_apart = random.Between(50ms, 1s);
  options_.page = random.OneOf(std::vector{1, 3, 500});
}

void World::DrawWork() {
  Random& random = lab_.random;
  const auto plan = [&](int count, Duration within, void (World::*make)(int)) {
    to_make_ += count;
    for (int i = 1; i <= count; ++i) {
      lab_.timeline.After(random.Between(Duration(0), within), [this, i, make] {
        --to_make_;
        (this->*make)(i);
      });
    }
  };
  plan(random.Between(1, 5), random.Chance(0.5) ? Duration(5s) : kBusy, &World::MakeBatch);
  plan(random.Between(0, 3), kBusy, &World::MakeBystander);
  plan(random.Between(options_.saves ? 3 : 1, options_.saves ? 8 : 5), kBusy, &World::MakeRequest);
  if (trouble_.users) plan(random.Between(0, 3), kBusy, &World::MakeOddPod);
}

void World::MakeBatch(int number) {
  Random& random = lab_.random;
  BatchJob job;
  job.pod.name = {random.Chance(0.7) ? "batch" : "night", absl::StrCat("job", number)};
  job.pod.cpu = random.OneOf(std::vector{500, 1000, 2000, 4000});
  job.pod.work = random.Between(5s, 60s);
  job.pod.grace = random.Between(0, 10);
  job.pieces = random.Between(1, 6);
  job.at_once = random.Between(1, job.pieces);
  job.same_names = random.Chance(0.3);
  job.waits_until_gone = random.Chance(0.5);
  if (options_.saves) {
    // There is always more to do than there is room for.
    job.pod.cpu = random.OneOf(std::vector{1000, 2000, 4000});
    job.pod.work = random.Between(20s, 120s);
    job.pieces = random.Between(1, 8);
    job.at_once = random.Chance(0.7) ? job.pieces : random.Between(1, job.pieces);
    job.in_cluster = true;
    job.pod.saved = random.Chance(0.8);
    std::string& methods = job.pod.annotations["siding.dev/preemptible"];
    methods = random.OneOf(std::vector<std::string>{"checkpoint", "checkpoint", "suspend,checkpoint",
                                                    "checkpoint,kill", "kill", ""});
    if (methods.empty()) {
      job.pod.annotations.clear();
    } else if (methods != "kill" && random.Chance(0.4)) {
      job.pod.annotations["siding.dev/checkpoint-interval"] = absl::StrCat(random.Between(2, 20), "s");
    }
  } else if (random.Chance(0.8)) {
    job.pod.annotations["siding.dev/preemptible"] = "suspend,checkpoint,kill";
  }
  if (random.Chance(0.1) && !job.pod.annotations.empty())
    job.pod.annotations["siding.dev/max-preemptions"] = "1";
  if (trouble_.ends && job.in_cluster && !job.same_names && random.Chance(0.3))
    job.most_failures = random.Between(0, 3);
  // Several Jobs may have one budget together, and two namespaces have budgets of one name.
  if (trouble_.budgets) job.pod.app = random.Chance(0.5) ? job.pod.name.name : "web";
  if (trouble_.budgets && random.Chance(0.6)) budgets_.Make(job.pod.name.space, job.pod.app);
  batch_.Add(std::move(job));
}

void World::MakeBystander(int number) {
  Random& random = lab_.random;
  PodWish wish{.name = {"apps", absl::StrCat("plain", number)}};
  wish.cpu = random.OneOf(std::vector{500, 1000, 2000});
  wish.work = random.Between(5s, 60s);
  lab_.trace("user", "makes ", ToString(wish.name));
  cluster_.Create(kubernetes::Pods(), wish.name.space, PodOf(wish, lab_.timeline.Now()));
}

void World::MakeRequest(int number) {
  Random& random = lab_.random;
  PodWish wish{.name = {"lab", absl::StrCat("run", number)}};
  wish.cpu = random.OneOf(std::vector{1000, 2000, 4000});
  wish.work = random.Between(2s, 30s);
  wish.grace = random.Between(0, 5);
  wish.gate = random.Chance(0.3);
  if (!wish.gate) wish.scheduler = "siding";
  const int within = random.Between(options_.saves ? 15 : 3, 90);
  wish.annotations["siding.dev/start-by"] = absl::StrCat("+", within, "s");
  if (random.Chance(0.7))
    wish.annotations["siding.dev/walltime"] = absl::StrCat(ToMicros(Time(wish.work)) / 1'000'000 + 5, "s");
  if (random.Chance(0.2)) wish.annotations["siding.dev/not-before"] = absl::StrCat("+", within / 2, "s");
  int pods = 1;
  if (random.Chance(0.3)) {
    pods = random.Between(2, static_cast<int>(kubelets_.names().size()));
    wish.annotations["siding.dev/gang"] = wish.name.name;
    wish.annotations["siding.dev/gang-size"] = absl::StrCat(pods);
  }
  lab_.trace("user", "asks for ", ToString(wish.name), ": ", pods, " pods of ", wish.cpu, "m within ", within,
             " s, for ", ToSeconds(wish.work), " s", wish.gate ? ", with the gate" : "");
  // Of a source of its own, so that the rest of the world is as it would be without.
  if (!wish.gate && Random(ToMicros(lab_.timeline.Now()) + number).Chance(0.4)) return AskFor(wish, pods);
  const Time made = lab_.timeline.Now();
  for (int i = 1; i <= pods; ++i) {
    PodWish one = wish;
    if (pods > 1) absl::StrAppend(&one.name.name, "-", i);
    const auto make = [this, one, made] {
      cluster_.Create(kubernetes::Pods(), one.name.space, PodOf(one, made));
    };
    if (i == 1) {
      make();
      continue;
    }
    ++to_make_;
    lab_.timeline.After(random.Between(1ms, 1s), [this, make] {
      --to_make_;
      make();
    });
  }
}

// By one object, of which siding makes the pods.
void World::AskFor(const PodWish& wish, int pods) {
  Json pod = PodOf(wish, lab_.timeline.Now());
  pod["spec"].erase("schedulerName");
  const auto said = [&](const char* what) {
    const auto found = wish.annotations.find(absl::StrCat("siding.dev/", what));
    return found == wish.annotations.end() ? std::string() : found->second;
  };
  Json spec = {{"startBy", said("start-by")}, {"count", pods}, {"template", {{"spec", pod["spec"]}}}};
  for (const auto& [field, what] :
       std::map<std::string, const char*>{{"walltime", "walltime"}, {"notBefore", "not-before"}}) {
    if (!said(what).empty()) spec[field] = said(what);
  }
  cluster_.Create(kubernetes::OnDemandRequests(), wish.name.space,
                  {{"metadata",
                    {{"name", wish.name.name},
                     {"namespace", wish.name.space},
                     {"generation", 1},
                     {"creationTimestamp", FormatTime(lab_.timeline.Now())}}},
                   {"spec", std::move(spec)}});
}

// What siding must refuse, or leave alone.
void World::MakeOddPod(int number) {
  Random& random = lab_.random;
  PodWish wish{.name = {"odd", absl::StrCat("odd", number)}};
  wish.work = random.Between(5s, 60s);
  const int kind = random.Below(3);
  if (kind == 0) {
    wish.annotations["siding.dev/preemptible"] = "stop";
    wish.annotations["siding.dev/odd"] = "1";
  } else if (kind == 1) {
    wish.annotations["siding.dev/start-by"] = "soon";
    wish.annotations["siding.dev/odd"] = "1";
    wish.scheduler = "siding";
  } else {
    // Another pod's number, with its seal.
    for (const auto& [name, pod] : cluster_.All("pods")) {
      if (Asked(*pod, "job").empty() || Asked(*pod, "preemptible").empty()) continue;
      for (const char* mark : {"job", "seal"})
        wish.annotations[absl::StrCat("siding.dev/", mark)] = Asked(*pod, mark);
      wish.annotations["siding.dev/preemptible"] = "kill";
      if (random.Chance(0.5)) break;
    }
  }
  lab_.trace("user", "makes ", ToString(wish.name), " with ", kubernetes::WriteJson(wish.annotations));
  cluster_.Create(kubernetes::Pods(), wish.name.space, PodOf(wish, lab_.timeline.Now()));
}

std::string World::AnyNode() {
  auto node = kubelets_.names().begin();
  std::advance(node, lab_.random.Below(static_cast<int>(kubelets_.names().size())));
  return node->first;
}

void World::DrawMishaps() {
  StartLater(lab_.random.Between(100ms, 10s));
  if (!trouble_.any()) return;
  const int count = lab_.random.Between(1, 15);
  for (int i = 0; i < count; ++i)
    lab_.timeline.After(lab_.random.Between(Duration(0), kBusy + 10s), [this] { Mishap(); });
}

void World::Mishap() {
  if (calm_) return;
  Random& random = lab_.random;
  std::vector<std::function<void()>> kinds;
  if (trouble_.deaths) {
    kinds.emplace_back([&] {
      if (!controllers_.empty()) controllers_.back()->Die();
    });
  }
  if (trouble_.takeovers) {
    kinds.emplace_back([&] {
      if (!controllers_.empty()) TakeOver();
    });
  }
  if (trouble_.nodes) {
    const auto lose = [&](void (Kubelets::*how)(const std::string&)) {
      const std::string node = AnyNode();
      (kubelets_.*how)(node);
      lab_.timeline.After(random.Between(1s, 120s), [this, node] { kubelets_.Return(node); });
    };
    kinds.emplace_back([lose] { lose(&Kubelets::CutOff); });
    kinds.emplace_back([lose] { lose(&Kubelets::CutPower); });
    kinds.emplace_back([lose] { lose(&Kubelets::Vanish); });
  }
  if (trouble_.objects) {
    kinds.emplace_back([&] {
      lab_.trace("user", "deletes the ConfigMap of numbers");
      if (cluster_.Delete(kubernetes::ConfigMaps(), NumbersAt(), "")) audit_.OnNumbersLost();
    });
    kinds.emplace_back([&] {
      lab_.trace("user", "deletes the Secret of the seal");
      cluster_.Delete(kubernetes::Secrets(), SealAt(), "");
    });
    kinds.emplace_back([&] { cluster_.Compact(); });
  }
  if (trouble_.watches) kinds.emplace_back([&] { cluster_.Compact(); });
  if (trouble_.budgets) kinds.emplace_back([&] { budgets_.ChangeOne(); });
  if (trouble_.users) kinds.emplace_back([&] { UserMishap(); });
  if (trouble_.users && options_.saves) kinds.emplace_back([&] { Withdraw(); });
  if (trouble_.users) kinds.emplace_back([&] { DeleteRequest(); });
  if (trouble_.agents) kinds.emplace_back([&] { AgentMishap(); });
  if (trouble_.ends) kinds.emplace_back([&] { EndOne(); });
  if (!kinds.empty()) random.OneOf(kinds)();
}

// Between the question whether a pod may go and its eviction, while it is saved, its budget may come to
// forbid it.
void World::UseUpBudget(const Json& pod) {
  Random& random = lab_.random;
  const std::string app = kubernetes::TextAt(pod, {"metadata", "labels", "app"});
  if (app.empty() || calm_ || !random.Chance(0.5)) return;
  const std::string space = kubernetes::TextAt(pod, {"metadata", "namespace"});
  lab_.timeline.After(random.Between(1ms, 5s), [this, space, app] { budgets_.Forbid(space, app); });
}

void World::AgentMishap() {
  Random& random = lab_.random;
  const std::string node = AnyNode();
  const Duration away = random.Between(100ms, random.Chance(0.5) ? Duration(2s) : Duration(60s));
  switch (random.Below(5)) {
    case 0:
    case 1:
      return agents_.Kill(node, away);
    case 2:
      return agents_.BreakStream(node);
    case 3:
      return agents_.CutOff(node, away);
    default:
      return agents_.Hang(node, random.Chance(0.5), away);
  }
}

void World::EndOne() {
  Random& random = lab_.random;
  if (random.Chance(0.2)) {
    const std::string node = AnyNode();
    kubelets_.ShutDown(node);
    return lab_.timeline.After(random.Between(10s, 120s), [this, node] { kubelets_.Return(node); });
  }
  std::vector<ObjectName> names;
  for (const auto& [name, pod] : cluster_.All("pods"))
    if (!IsOver(*pod) && !NodeOf(*pod).empty()) names.push_back(name);
  if (names.empty()) return;
  const ObjectName name = random.OneOf(names);
  if (random.Chance(0.3)) {
    kubelets_.Crash(name);
  } else {
    kubelets_.Disrupt(name, random.OneOf(std::vector<std::string>{"Evicted", "Preempting"}));
  }
}

// Its user does not want a pod to make way any more, or does not want its Job any more.
void World::Withdraw() {
  Random& random = lab_.random;
  if (random.Chance(0.2) && batch_.DeleteOne()) return;
  std::vector<ObjectName> names;
  for (const auto& [name, pod] : cluster_.All("pods")) {
    if (!IsOver(*pod) && !Asked(*pod, "preemptible").empty()) names.push_back(name);
  }
  if (names.empty()) return;
  const ObjectName name = random.OneOf(names);
  lab_.trace("user", "takes the annotations of ", ToString(name), " away");
  Json none = Json::object();
  for (const char* word : {"preemptible", "checkpoint-interval", "max-preemptions"})
    none[absl::StrCat("siding.dev/", word)] = nullptr;
  cluster_.Patch(kubernetes::Pods(), name, "", {{"metadata", {{"annotations", none}}}});
}

// Whatever has become of it.
void World::DeleteRequest() {
  std::vector<ObjectName> names;
  const kubernetes::Resource kind = kubernetes::OnDemandRequests();
  for (const auto& [name, request] : cluster_.All(kind.plural)) names.push_back(name);
  if (names.empty()) return;
  const ObjectName name = lab_.random.OneOf(names);
  lab_.trace("user", "deletes request ", ToString(name));
  cluster_.Delete(kind, name, "");
  lab_.timeline.After(lab_.random.Between(1ms, 5s), [this] { DeleteRequests(); });
}

// Deletes a pod, with or without its grace; or puts another in its place at once, which asks nothing.
void World::UserMishap() {
  Random& random = lab_.random;
  std::vector<ObjectName> names;
  for (const auto& [name, pod] : cluster_.All("pods")) {
    if (!IsOver(*pod)) names.push_back(name);
  }
  if (names.empty()) return;
  const ObjectName name = random.OneOf(names);
  const bool at_once = random.Chance(0.5);
  lab_.trace("user", "deletes ", ToString(name), at_once ? " at once" : "");
  cluster_.Delete(kubernetes::Pods(), name, "", at_once ? std::optional(0) : std::nullopt);
  if (!random.Chance(0.5) || name.space != "lab") return;
  PodWish wish{.name = name};
  wish.work = random.Between(2s, 20s);
  if (random.Chance(0.5)) {
    wish.annotations["siding.dev/start-by"] = "+60s";
    wish.scheduler = "siding";
  }
  lab_.trace("user", "makes another ", ToString(name), " in its place");
  cluster_.Create(kubernetes::Pods(), name.space, PodOf(wish, lab_.timeline.Now()));
}

}  // namespace siding::simulation::pods
