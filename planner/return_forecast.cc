#include "planner/return_forecast.h"

#include <algorithm>
#include <tuple>

namespace siding {
namespace {

using Room = std::map<NodeId, Resources>;

bool IsTied(const Waiter& waiter) { return !waiter.job.frozen_on.empty() || !waiter.job.tied_to.empty(); }

const std::vector<NodeId>& OwnNodes(const Waiter& waiter) {
  return waiter.job.frozen_on.empty() ? waiter.job.tied_to : waiter.job.frozen_on;
}

// As far as is known: what is expected, or what will not be exceeded.
class Reading {
 public:
  explicit Reading(bool at_the_latest) : at_the_latest_(at_the_latest) {}
  template <class T>
  std::optional<T> Of(const Known<T>& known) const {
    return at_the_latest_ || !known.expected ? known.latest : known.expected;
  }

 private:
  bool at_the_latest_;
};

class Play {
 public:
  Play(const ReturnBasis& basis, QueueStart queue, bool at_the_latest, int64_t effort)
      : basis_(basis),
        queue_(queue),
        read_(at_the_latest),
        effort_(effort),
        room_(basis.room),
        to_continue_(basis.to_continue) {
    for (const Holding& holding : basis.held) Hold(holding);
    for (const Waiter& waiter : basis.waiters) waiting_[waiter.job.id] = &waiter;
  }

  std::map<JobId, Back> Run() {
    for (std::optional<Time> at = basis_.now; at && !waiting_.empty(); at = NextAfter(*at)) {
      now_ = *at;
      ReleaseWhatIsDue();
      fits_.clear();
      effort_ -= static_cast<int64_t>(waiting_.size() + room_.size());
      if (effort_ < 0) break;
      StartFromTheWayBack();
      StartFromTheQueue();
    }
    for (const auto& [id, waiter] : waiting_) backs_[id].because = WhyNever(*waiter);
    return std::move(backs_);
  }

 private:
  struct Freed {
    Time at;
    BackReason by;
  };

  // ---- who holds what ----

  void Hold(Holding holding) {
    const std::optional<Time> until = read_.Of(holding.until);
    const size_t number = next_++;
    if (until) ends_.emplace(std::max(*until, basis_.now), number);
    held_.emplace(number, std::move(holding));
  }

  void ReleaseWhatIsDue() {
    freed_now_.clear();
    while (!ends_.empty() && ends_.begin()->first <= now_) {
      const auto held = held_.find(ends_.begin()->second);
      ends_.erase(ends_.begin());
      const Holding& holding = held->second;
      for (const NodeId& node : holding.nodes) {
        for (Room* const room : {&room_, &to_continue_}) {
          if (const auto free = room->find(node); free != room->end()) free->second += holding.per_node;
        }
        freed_[node] = {now_, {holding.until.kind, holding.job, node}};
        freed_now_.insert(node);
      }
      held_.erase(held);
    }
  }

  std::optional<Time> NextAfter(Time now) const {
    std::optional<Time> next;
    const auto consider = [&](Time at) {
      if (at > now && (!next || at < *next)) next = at;
    };
    if (const auto end = ends_.upper_bound(now); end != ends_.end()) consider(end->first);
    for (const auto& [id, waiter] : waiting_) {
      if (const auto from = From(*waiter)) consider(*from);
    }
    return next;
  }

  // None: never, as far as is known.
  std::optional<Time> From(const Waiter& waiter) const {
    return waiter.from ? read_.Of(*waiter.from) : basis_.now;
  }

  bool IsThere(const Waiter& waiter) const {
    const std::optional<Time> from = From(waiter);
    return from && *from <= now_;
  }

  // ---- who gets what ----

  // There are enough nodes with enough room: looked up once a moment for jobs that need the same.
  bool Fits(const Returning& job) {
    const Resources& r = job.per_node;
    const auto [known, is_new] = fits_.try_emplace({r.slots, r.memory, r.gpus, job.nodes}, false);
    if (is_new) {
      int left = job.nodes;
      for (const auto& [node, free] : room_) {
        if (free.Covers(r) && --left <= 0) break;
      }
      known->second = left <= 0;
    }
    return known->second;
  }

  bool MayFindNodes(const Waiter& waiter) {
    if (now_ == basis_.now || (waiter.from && From(waiter) == now_)) return true;
    const std::vector<NodeId>& own = OwnNodes(waiter);
    const bool freed =
        std::any_of(own.begin(), own.end(), [&](const NodeId& n) { return freed_now_.contains(n); });
    return freed || ((own.empty() || waiter.job.move > Duration(0)) && Fits(waiter.job));
  }

  void StartFromTheWayBack() {
    std::vector<Returning> jobs;
    bool any = false;
    for (const auto& [id, waiter] : waiting_) {
      if (!waiter->made_way || !IsThere(*waiter)) continue;
      any = any || MayFindNodes(*waiter);
      // To look for nodes takes long, and those who need the same find none either.
      const bool fits = Fits(waiter->job);
      if (!fits && !IsTied(*waiter)) continue;
      jobs.push_back(waiter->job);
      if (!fits) jobs.back().move = Duration(0);
    }
    if (!any) return;
    for (const WayBack& way : PlanWayBack(std::move(jobs), room_, HeldUntil(), now_, to_continue_))
      Start(way.job, way.action, way.nodes);
  }

  std::map<NodeId, Time> HeldUntil() const {
    std::map<NodeId, Time> until;
    for (const auto& [number, holding] : held_) {
      const Known<Time>& end = holding.until;
      if (!holding.request || !(end.expected || end.latest)) continue;
      for (const NodeId& node : holding.nodes)
        until[node] = std::max(until[node], end.expected ? *end.expected : *end.latest);
    }
    return until;
  }

  void StartFromTheQueue() {
    std::set<JobId> ids;
    bool any = false;
    fits_.clear();  // the way back has taken some
    for (const auto& [id, waiter] : waiting_) {
      if (!waiter->job.frozen_on.empty() || !IsThere(*waiter)) continue;
      ids.insert(id);
      any = any || MayFindNodes(*waiter);
    }
    if (!any) return;
    effort_ -= static_cast<int64_t>(held_.size());
    std::vector<const Holding*> held;
    for (const auto& [number, holding] : held_) held.push_back(&holding);
    for (auto& [id, nodes] : queue_(now_, ids, room_, held)) {
      if (waiting_.contains(id)) Start(id, WayBack::Action::kRestore, std::move(nodes));
    }
  }

  void Start(JobId id, WayBack::Action action, std::vector<NodeId> nodes) {
    const Waiter& waiter = *waiting_.at(id);
    waiting_.erase(id);
    const bool moves = action == WayBack::Action::kMove;
    const Time there = moves ? now_ + waiter.job.move : now_;
    Back& back = backs_[id];
    back.because = WhyNow(waiter, nodes);
    back.predicted = there;
    if (action != WayBack::Action::kResume) {
      for (const NodeId& node : nodes) {
        if (const auto free = room_.find(node); free != room_.end()) free->second -= waiter.job.per_node;
      }
    }
    if (moves) Hold({id, waiter.job.frozen_on, waiter.job.per_node, {there, there, BackKind::kLeaving}});
    Holding holding{id, nodes, waiter.job.per_node, {}};
    holding.until.kind = waiter.stays.kind;
    if (waiter.stays.expected) holding.until.expected = there + *waiter.stays.expected;
    if (waiter.stays.latest) holding.until.latest = there + *waiter.stays.latest;
    Hold(std::move(holding));
    back.nodes = std::move(nodes);
  }

  // ---- why ----

  // The last of its nodes to become free says it. What was free before was another's turn, or kept for it,
  // until somebody left now.
  BackReason WhyNow(const Waiter& waiter, const std::vector<NodeId>& nodes) const {
    const Freed* last = nullptr;
    for (const NodeId& node : nodes) {
      const auto freed = freed_.find(node);
      if (freed != freed_.end() && (last == nullptr || freed->second.at > last->at)) last = &freed->second;
    }
    BackReason why;
    if (waiter.from && From(waiter) == now_ && now_ > basis_.now && (last == nullptr || last->at < now_)) {
      why = {waiter.from->kind, JobId(), NodeId()};
    } else if (last != nullptr) {
      why = last->by;
    } else if (!freed_now_.empty()) {
      why = freed_.at(*freed_now_.begin()).by;
    }
    if (why.job == waiter.job.id) why = {why.kind, JobId(), NodeId()};  // it is leaving these nodes itself
    why.image = IsTied(waiter) && !nodes.empty() && nodes == OwnNodes(waiter);
    return why;
  }

  BackReason WhyNever(const Waiter& waiter) {
    if (waiter.from && !From(waiter)) return {BackKind::kNoEnd, waiter.job.id, NodeId()};
    for (const NodeId& node : OwnNodes(waiter)) {
      if (!room_.contains(node) && (waiter.job.frozen_on.empty() || !to_continue_.contains(node)))
        return {BackKind::kNodeAway, JobId(), node, true};
    }
    if (effort_ < 0) return {BackKind::kTooMuch, {}, {}};
    for (const NodeId& node : OwnNodes(waiter)) {
      if (const JobId job = WithoutEnd(node); job != JobId()) return {BackKind::kNoEnd, job, node, true};
    }
    if (OwnNodes(waiter).empty()) {
      int large = 0;
      const std::pair<const NodeId, JobId>* found = nullptr;
      for (const auto& [node, capacity] : basis_.capacities) {
        if (!capacity.Covers(waiter.job.per_node)) continue;
        ++large;
        const auto free = room_.find(node);
        if (found == nullptr && free != room_.end() && !free->second.Covers(waiter.job.per_node)) {
          WithoutEnd(node);
          const auto without = without_end_->find(node);
          if (without != without_end_->end()) found = &*without;
        }
      }
      if (large < waiter.job.nodes) return {BackKind::kTooFew, {}, {}};
      if (found != nullptr) return {BackKind::kNoEnd, found->second, found->first};
    }
    return {BackKind::kBehind, {}, {}};
  }

  // A job on this node of whose end nothing is known; 0: there is none.
  JobId WithoutEnd(const NodeId& node) {
    if (!without_end_) {
      without_end_.emplace();
      for (const auto& [number, holding] : held_) {
        if (read_.Of(holding.until)) continue;
        for (const NodeId& its : holding.nodes) without_end_->emplace(its, holding.job);
      }
    }
    const auto found = without_end_->find(node);
    return found == without_end_->end() ? JobId() : found->second;
  }

  const ReturnBasis& basis_;
  const QueueStart queue_;
  const Reading read_;
  int64_t effort_;
  Time now_;
  Room room_, to_continue_;
  std::map<size_t, Holding> held_;
  size_t next_ = 0;
  std::multimap<Time, size_t> ends_;
  std::map<JobId, const Waiter*> waiting_;
  std::map<JobId, Back> backs_;
  std::map<NodeId, Freed> freed_;
  std::set<NodeId> freed_now_;
  std::map<std::tuple<int, Bytes, int, int>, bool> fits_;
  std::optional<std::map<NodeId, JobId>> without_end_;
};

template <class T>
bool Differs(const Known<T>& known) {
  return known.expected.has_value() && known.expected != known.latest;
}

// More is known of what is expected than of what must be.
bool AnythingIsExpected(const ReturnBasis& basis) {
  return std::any_of(basis.held.begin(), basis.held.end(),
                     [](const Holding& h) { return Differs(h.until); }) ||
         std::any_of(basis.waiters.begin(), basis.waiters.end(),
                     [](const Waiter& w) { return Differs(w.stays) || (w.from && Differs(*w.from)); });
}

}  // namespace

std::map<JobId, Back> ForecastReturns(const ReturnBasis& basis, QueueStart queue, int64_t effort) {
  std::map<JobId, Back> backs = Play(basis, queue, /*at_the_latest=*/false, effort).Run();
  const std::map<JobId, Back> late =
      AnythingIsExpected(basis) ? Play(basis, queue, /*at_the_latest=*/true, effort).Run() : backs;
  for (auto& [id, back] : backs) {
    const std::optional<Time>& latest = late.at(id).predicted;
    if (back.predicted && latest) back.latest = std::max(*back.predicted, *latest);
  }
  return backs;
}

}  // namespace siding
