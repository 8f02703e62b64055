#include "sim/protection_schedule.h"

#include <algorithm>
#include <cmath>

#include "model/checkpoint_cost.h"
#include "model/checkpoint_interval.h"
#include "sim/strategies.h"

namespace siding::sim {
namespace {

// A process that writes more between two images is not tracked.
constexpr double kMostWritten = 0.75;
// The first two are like no others.
constexpr int kFirst = ImageRow::kFirst;

// What the images of a job cost, whenever they are taken.
class Images {
 public:
  Images(const Job& job, const Policy& policy, const Parameters& p)
      : job_(job),
        p_(p),
        is_local_(policy.checkpoint_tier == Tier::kLocal),
        left_(policy.ShareLeft()),
        tracked_(IsTracked(p)),
        row_(RowOf(p)) {}

  const ImageRow& row() const { return row_; }
  CheckpointCost Cost(int image) const {
    return {.stop = FromSeconds(Stop(image)),
            .takes = FromSeconds(Takes(image)),
            .written = siding::Bytes{static_cast<int64_t>(job_.trace.nodes * Bytes(image))},
            .ran_on = RunsOn()};
  }
  double Bytes(int image) const { return row_.Share(image) * job_.bytes; }
  double Writing(int image, double speed) const {
    if (is_local_) return speed * LocalTransferTime(p_, Bytes(image));
    return WritingShared(Bytes(image), speed, image == 0);
  }
  // Of a copy of so much of its memory.
  double Copying(double share, bool is_first) const {
    return WritingShared(share * job_.bytes, job_.speed, is_first);
  }
  double Stop(int image) const {
    if (!RunsOn()) return Writing(image, job_.speed);
    const bool as_criu = image < 2 || !tracked_;
    const double per_gib = as_criu ? p_.untracked_stop_per_gib : p_.image_stop_per_gib;
    return p_.image_stop + per_gib * job_.bytes / kGib;
  }
  double Takes(int image) const { return Writing(image, job_.speed) + (RunsOn() ? Stop(image) : 0); }
  // Until the next one, each page that is written costs a fault; from the second image on.
  double Faults(int image) const {
    return tracked_ && image >= 1 ? p_.page_fault * p_.written_share * job_.bytes / kPageSize : 0;
  }

 private:
  // While it is written.
  bool RunsOn() const { return !p_.whole_images; }
  // The first one is not one of those for which the policy keeps bandwidth: it is written like any dump.
  double WritingShared(double bytes, double speed, bool is_first) const {
    const double share = p_.images_alone ? 1 : is_first ? left_ : 1 - left_;
    const double bandwidth = share * p_.shared_bandwidth;
    return std::max(speed * NodeTransferTime(p_, bytes), job_.trace.nodes * bytes / bandwidth);
  }

  const Job& job_;
  const Parameters& p_;
  const bool is_local_;
  const double left_;
  const bool tracked_;
  const ImageRow& row_;
};

// Each so many-th image is copied. `bandwidth`: what copies may take.
double CopyEach(const Images& costs, double bytes, double bandwidth, double interval) {
  const auto takes = [&](double n) {
    const double share = costs.row().MeanNew(n);
    return std::max(share * bytes / bandwidth, costs.Copying(share, false));
  };
  double n = 1;
  // No smaller one than the next is enough: it would have no less to copy.
  while (takes(n) > n * interval) n = std::max(n + 1, std::ceil(takes(n) / interval));
  return n;
}

}  // namespace

bool IsTracked(const Parameters& p) { return !p.whole_images && p.written_share <= kMostWritten; }

const ImageRow& RowOf(const Parameters& p) {
  return IsTracked(p) ? RowOf(p.written_share, p.same_pages) : RowOf(1);
}

ProtectionSchedule::ProtectionSchedule(const Job& job, const Policy& policy, const Parameters& p,
                                       int machine) {
  const Duration most_lost = MostLostWork(policy);
  if ((job.on_demand && !p.protect_on_demand) || most_lost <= Duration(0)) return;
  is_local_ = policy.checkpoint_tier == Tier::kLocal;
  const Images costs(job, policy, p);
  const double nodes = job.trace.nodes;
  const double shared = policy.checkpoint_bandwidth * SharedPart(p, job, machine);
  const double most_written = is_local_ ? policy.checkpoint_bandwidth * nodes * p.local_bandwidth : shared;
  // Before the first one: by its size and the measured speed, and whatever it costs.
  const Duration first = FromSeconds(costs.Writing(0, 1));
  IntervalTerms terms{.cost = {.stop = first, .takes = first, .longest = first}, .most_lost = most_lost};
  std::vector<CheckpointCost> learned;
  Image next;
  const int images = kFirst + costs.row().round();
  for (int k = 0; k <= images; ++k) {
    const double interval = ToSeconds(ChooseInterval(terms).interval);
    next = k == 0 ? Image{.begin = interval, .work = interval} : NextTo(next, interval);
    if (k == images) break;
    // As if a round had been before. The longest of the first images stays: the service forgets it after a
    // hundred others.
    for (int i = kFirst; k == kFirst && i < images; ++i) Learn(learned, costs.Cost(i));
    next.stop = costs.Stop(k);
    next.takes = costs.Takes(k);
    next.bytes = nodes * costs.Bytes(k);
    next.shares = !costs.row().IsWhole(k);
    Learn(learned, costs.Cost(k));
    terms.cost = *Expected(learned, Tier::kShared);
    terms.most_stopped = policy.checkpoint_stops;
    terms.bytes_per_second = most_written;
    // Not more than half of the time: what writes so much takes its time as well.
    const double following = ToSeconds(ChooseInterval(terms).interval);
    next.faults = std::min(costs.Faults(k), 0.5 * (next.takes - next.stop + following));
    next.most_lost = ToSeconds(LongestInterval(terms)) + 3 * ToSeconds(terms.cost.longest);
    images_.push_back(next);
  }
  end_ = next;
  row_ = &costs.row();
  bytes_ = nodes * job.bytes;
  if (!is_local_ || !policy.copy_images) return;
  copy_each_ = CopyEach(costs, bytes_, shared, interval());
  first_copy_takes_ = costs.Copying(1, true);
  copy_takes_ = costs.Copying(row_->MeanNew(copy_each_), false);
}

ProtectionSchedule::Image ProtectionSchedule::NextTo(const Image& last, double interval) const {
  Image next;
  next.begin = last.ready() + interval;
  next.work = last.work + (next.begin - last.begin - last.stop) - last.faults;
  next.stopped = last.stopped + last.stop;
  next.written = last.written + last.bytes;
  return next;
}

double ProtectionSchedule::interval() const {
  return protects() ? (end_.begin - images_[kFirst].begin) / (std::ssize(images_) - kFirst) : 0;
}

ProtectionSchedule::Moment ProtectionSchedule::Find(double computing) const {
  if (!protects()) return {0, computing, -1};
  const double from = images_[kFirst].begin, round = end_.begin - from;
  const double rounds = computing < from ? 0 : std::floor((computing - from) / round);
  computing -= rounds * round;
  const auto next = std::upper_bound(images_.begin(), images_.end(), computing,
                                     [](double at, const Image& image) { return at < image.begin; });
  return {rounds, computing, static_cast<int>(next - images_.begin()) - 1};
}

const ProtectionSchedule::Image& ProtectionSchedule::After(int image) const {
  return image + 1 < std::ssize(images_) ? images_[image + 1] : end_;
}

double ProtectionSchedule::Work(double computing) const {
  const Moment m = Find(computing);
  if (m.image < 0) return computing;
  const Image &image = images_[m.image], &next = After(m.image);
  const double runs = image.begin + image.stop;
  const double rate = (next.work - image.work) / (next.begin - runs);
  return m.rounds * (end_.work - images_[kFirst].work) + image.work +
         rate * std::max(0.0, m.computing - runs);
}

double ProtectionSchedule::TimeFor(double work) const {
  if (!protects() || work <= images_[0].work) return work;
  const double from = images_[kFirst].work, round = end_.work - from;
  // Done when the next image is begun, it stands still only afterwards.
  const double rounds = work <= from ? 0 : std::ceil((work - from) / round) - 1;
  work -= rounds * round;
  const auto after = std::lower_bound(images_.begin(), images_.end(), work,
                                      [](const Image& image, double w) { return image.work < w; });
  const int last = std::max(0, static_cast<int>(after - images_.begin()) - 1);
  const Image &image = images_[last], &next = After(last);
  const double runs = image.begin + image.stop;
  const double rate = (next.work - image.work) / (next.begin - runs);
  return rounds * (end_.begin - images_[kFirst].begin) + runs + (work - image.work) / rate;
}

double ProtectionSchedule::Stopped(double computing) const {
  const Moment m = Find(computing);
  if (m.image < 0) return 0;
  const Image& image = images_[m.image];
  return m.rounds * (end_.stopped - images_[kFirst].stopped) + image.stopped +
         std::min(image.stop, m.computing - image.begin);
}

double ProtectionSchedule::Durable(double computing) const {
  const double newest = Newest(computing);
  return newest < 0 ? 0 : Numbered(newest).work;
}

bool ProtectionSchedule::SharesPages(double computing) const {
  const double newest = Newest(computing);
  return newest >= 0 && Numbered(newest).shares;
}

double ProtectionSchedule::MostLost(double computing) const {
  const double newest = Newest(computing);
  return newest < 0 ? 0 : Numbered(newest).most_lost;
}

double ProtectionSchedule::BusyUntil(double computing) const {
  const Moment m = Find(computing);
  if (m.image < 0 || m.computing >= images_[m.image].ready()) return 0;
  return computing + images_[m.image].ready() - m.computing;
}

double ProtectionSchedule::Written(double computing) const {
  const Moment m = Find(computing);
  if (m.image < 0) return 0;
  const Image& image = images_[m.image];
  return m.rounds * (end_.written - images_[kFirst].written) + image.written + image.bytes;
}

double ProtectionSchedule::WrittenByCopies(double computing) const {
  const double copied = copy_each_ > 0 ? NewestCopied(computing) : -1;
  return copied < 0 ? 0 : bytes_ * (1 + copied / copy_each_ * row_->MeanNew(copy_each_));
}

Saved ProtectionSchedule::Copied(double computing) const {
  const double copied = NewestCopied(computing);
  return copied < 0 ? Saved{} : Saved{Numbered(copied).work, !row_->IsWhole(copied)};
}

double ProtectionSchedule::Uncopied(double computing) const {
  const double newest = Newest(computing);
  if (!is_local_ || newest < 0) return 0;
  return copy_each_ > 0 ? bytes_ * row_->NewSince(newest, NewestCopied(computing)) : kNever;
}

double ProtectionSchedule::Newest(double computing) const {
  const Moment m = Find(computing);
  if (m.image < 0) return -1;
  const double begun = m.rounds * row_->round() + m.image;
  // The one before counts by then: none is ordered earlier.
  return m.computing < images_[m.image].ready() ? begun - 1 : begun;
}

double ProtectionSchedule::NewestCopied(double computing) const {
  const double newest = Newest(computing);
  if (!is_local_) return newest;
  if (newest < 0 || copy_each_ == 0) return -1;
  double copied = std::floor(newest / copy_each_) * copy_each_;
  while (copied >= 0 && Numbered(copied).ready() + CopyTakes(copied) > computing) copied -= copy_each_;
  return std::max(copied, -1.0);
}

ProtectionSchedule::Image ProtectionSchedule::Numbered(double number) const {
  const double rounds = number < kFirst ? 0 : std::floor((number - kFirst) / row_->round());
  Image image = images_[static_cast<size_t>(number - rounds * row_->round())];
  image.begin += rounds * (end_.begin - images_[kFirst].begin);
  image.work += rounds * (end_.work - images_[kFirst].work);
  return image;
}

}  // namespace siding::sim
