#include "tests/simulation/kubernetes/world.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/simulation/kubernetes/keys.h"

namespace siding::simulation::pods {

using namespace std::chrono_literals;

namespace {

constexpr Duration kLook = 5s;
// With nothing going wrong any more, everything that was asked for is done long before.
constexpr Duration kPatience = 1h;

bool IsRequestPod(const Json& pod) { return !Asked(pod, "start-by").empty(); }

}  // namespace

// Mixed: seeds that follow on each other would draw much of the same.
World::World(uint64_t seed, bool print) : lab_(Random(seed).Next(), print) {
  DrawKeysFrom(lab_.random.Next());
  // Of a source of its own: worlds without agents are as if there were none.
  options_.saves = Random(~seed).Chance(0.5);
  DrawTrouble();
  DrawPolicy();
  if (options_.saves) DrawAgents();
  cluster_.on_change = {[this](const FakeStore::Event& event) { kubelets_.OnChange(event); },
                        [this](const FakeStore::Event& event) { scheduler_.OnChange(event); },
                        [this](const FakeStore::Event& event) { batch_.OnChange(event); },
                        [this](const FakeStore::Event& event) { budgets_.OnChange(event); },
                        [this](const FakeStore::Event& event) { lives_of_pods_.OnChange(event); }};
  audit_.on_evicted = [this](const Json& pod, const Caller& caller) { victims_.OnEvicted(pod, caller); };
  kubelets_.on_turned_down = [this](const Json& pod) { audit_.OnTurnedDown(pod); };
  journal_.on_event = [this](const Event& event) {
    audit_.OnEvent(event);
    victims_.OnEvent(event, controllers_.back()->engine_was_told());
    lives_of_pods_.OnEvent(event);
    if (std::holds_alternative<RequestRefused>(event.body)) refused_.insert(event.job);
    if (std::holds_alternative<JobSubmitted>(event.body)) refused_.erase(event.job);
  };
  journal_.on_crash = [this] { controllers_.back()->OnDoom(); };
  journal_.on_error = [this] { controllers_.back()->OnDamage(); };
  const int nodes = lab_.random.Between(2, 5);
  for (int i = 1; i <= nodes; ++i) kubelets_.Add(absl::StrCat("n", i));
  if (options_.saves) {
    for (int i = 1; i <= nodes; ++i) agents_.Start(absl::StrCat("n", i));
  }
  DrawWork();
  DrawMishaps();
}

Outcome World::Run() {
  const Time begun = lab_.timeline.Now();
  StartController();
  lab_.timeline.After(lab_.random.Between(120s, 300s), [this] { CalmDown(); });
  while (lab_.trace.violation().empty() && !rests_) lab_.timeline.Step();
  if (rests_) {
    controllers_.back()->CompareWithJournal();
    batch_.AtTheEnd();
    if (!trouble_.any()) CheckPromises();
  }
  return {lab_.trace.violation(), lab_.trace.hash(), lab_.timeline.Now() - begun};
}

void World::StartController() {
  Sweep();
  ControllerOptions options = options_;
  options.name = absl::StrCat("siding-", ++lives_);
  options.seal_keeper = &seal_;
  const Wire::Ends ends{lab_, cluster_, audit_, network_, pacer_, options.name};
  controllers_.push_back(std::make_unique<Controller>(ends, journal_, streams_, options));
  controllers_.back()->on_order = [this](const NodeId& node, const v1::ToAgent& order) {
    lives_of_pods_.OnOrder(node, order);
  };
  controllers_.back()->Start();
}

// Its supervisor sees that it is dead, and starts another.
void World::Sweep() {
  std::erase_if(controllers_,
                [](const auto& controller) { return !controller->lives() && !controller->busy(); });
}

void World::StartLater(Duration after) {
  lab_.timeline.After(after, [this] {
    if (controllers_.empty() || !controllers_.back()->lives()) StartController();
    StartLater(lab_.random.Between(100ms, 10s));
  });
}

// Another controller takes the journal. The one before does not know it, and goes on for a while.
void World::TakeOver() {
  Controller* const before = controllers_.back().get();
  if (!before->lives()) return;
  lab_.trace("world", "another controller takes over");
  before->Depose();
  lab_.timeline.After(lab_.random.Between(1s, 60s), [this, before] {
    for (const auto& controller : controllers_)
      if (controller.get() == before) before->Die();
  });
  StartController();
}

void World::CalmDown() {
  lab_.trace("world", "nothing goes wrong any more");
  calm_ = true;
  lab_.odds = Odds();
  network_.odds = CallOdds();
  give_up_ = lab_.timeline.Now() + kPatience;
  for (const auto& [node, made] : kubelets_.names()) kubelets_.Return(node);
  if (options_.saves) {
    agents_.CalmDown();
  }
  LookForRest();
}

// Users delete what will never start, and what was done long ago.
void World::DeleteRefused() {
  std::map<std::string, int> members;  // that have not ended, of each gang
  for (const auto& [name, pod] : cluster_.All("pods"))
    if (!IsOver(*pod) && !IsDeleting(*pod)) ++members[Asked(*pod, "gang")];
  for (const auto& [name, pod] : FakeStore::Objects(cluster_.All("pods"))) {
    int64_t number = 0;
    const bool is_refused = !Asked(*pod, "odd").empty() || (absl::SimpleAtoi(Asked(*pod, "job"), &number) &&
                                                            refused_.contains(JobId(number)));
    int size = 0;
    const bool lacks_members = absl::SimpleAtoi(Asked(*pod, "gang-size"), &size) && NodeOf(*pod).empty() &&
                               members[Asked(*pod, "gang")] < size;
    const bool is_over = IsOver(*pod) && IsRequestPod(*pod);
    if ((is_refused || is_over || lacks_members) && !IsDeleting(*pod))
      cluster_.Delete(kubernetes::Pods(), name, UidOf(*pod), is_over ? std::optional(0) : std::nullopt);
  }
}

std::string World::Unrest() {
  if (to_make_ > 0) return "pods are still to come";
  for (const auto& [name, pod] : cluster_.All("pods")) {
    if (!IsOver(*pod)) return absl::StrCat(ToString(name), " is not over");
  }
  if (std::string batch = batch_.Unrest(); !batch.empty()) return batch;
  if (std::string request = RequestUnrest(); !request.empty()) return request;
  for (const auto& [id, job] : journal_.state().unfinished)
    return absl::StrCat("job ", id.value(), " is ", ToString(job->state));
  if (std::string left = audit_.Leftover(); !left.empty() || !options_.saves) return left;
  return lives_of_pods_.Leftover();
}

namespace {

std::string StateOf(const Json& request) { return kubernetes::TextAt(request, {"status", "state"}); }

}  // namespace

// Users delete requests that have come to their end, whatever that is; and the garbage collector their pods.
void World::DeleteRequests() {
  const kubernetes::Resource kind = kubernetes::OnDemandRequests();
  std::set<std::string> uids;
  for (const auto& [name, request] : FakeStore::Objects(cluster_.All(kind.plural))) {
    const std::string state = StateOf(*request);
    if (state == "Completed" || state == "Failed" || state == "Refused" || state == "Invalid") {
      lab_.trace("user", "deletes request ", name.name, ", which is ", state);
      cluster_.Delete(kind, name, UidOf(*request));
    } else {
      uids.insert(UidOf(*request));
    }
  }
  for (const auto& [name, pod] : FakeStore::Objects(cluster_.All("pods"))) {
    const Json* owners = kubernetes::Find(*pod, {"metadata", "ownerReferences"});
    if (owners == nullptr || owners->empty() || IsDeleting(*pod)) continue;
    const Json& owner = owners->front();
    if (kubernetes::TextAt(owner, {"kind"}) == "OnDemandRequest" &&
        !uids.contains(kubernetes::TextAt(owner, {"uid"})))
      cluster_.Delete(kubernetes::Pods(), name, UidOf(*pod));
  }
}

std::string World::RequestUnrest() {
  for (const auto& [name, request] : cluster_.All(kubernetes::OnDemandRequests().plural))
    return absl::StrCat("request ", ToString(name), " is ", StateOf(*request));
  return "";
}

void World::LookForRest() {
  DeleteRequests();
  DeleteRefused();
  const std::string unrest = Unrest();
  if (unrest.empty()) {
    rests_ = true;
  } else if (lab_.timeline.Now() > give_up_) {
    lab_.trace.Violate("it does not come to rest: " + unrest);
  } else {
    lab_.timeline.After(kLook, [this] { LookForRest(); });
  }
}

// Of each that was admitted in a world in which nothing goes wrong, and whose nodes were kept from then on.
// Who takes a node before its taint is there makes for another plan.
void World::CheckPromises() {
  for (const auto& [id, job] : journal_.state().jobs) {
    if (job.spec.kind != JobKind::kOnDemand || job.plans.size() != 1 || job.spec.not_before > job.submitted)
      continue;
    const Plan& plan = job.plans.front();
    if (!plan.feasible || !plan.refusal.empty() || plan.predicted_start > job.spec.start_by) continue;
    if (!job.first_started || *job.first_started > job.spec.start_by)
      lab_.trace.Violate(absl::StrCat("job ", id.value(), " was promised a start by ",
                                      FormatTime(job.spec.start_by), ", and started ",
                                      job.first_started ? FormatTime(*job.first_started) : "never"));
  }
}

Outcome RunWorld(uint64_t seed, bool print) { return World(seed, print).Run(); }

}  // namespace siding::simulation::pods
