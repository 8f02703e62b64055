// Checkpoints that a job gets on schedule while it computes: when they are taken, what they cost it, and what
// they save. All follows from how long it has computed since it was started or restored, so that no event is
// needed for each of them. Times are seconds.
//
//   interval | first image | interval | image | interval | image | ...
//
// The first image is ordered as soon as most_lost_work asks for it; each further interval follows from what
// the last ten images have cost, as in the service (model/checkpoint_cost.h), so that after a few images they
// are the same again and again.
//
// A job that is not tracked stands still until all of an image is written, and each of its images is whole.
// One that is tracked stands still for the first two as criu does, and then shortly; an image has what was
// written since the last one, and what is written again of earlier ones (sim/image_row.h), and the rest is
// done while it computes. An image counts when it is written. A job of several nodes stops for no longer than
// one of one node: what its ranks wait for each other is not known.
//
// Where the policy has checkpoint_tier: local, images are written to the nodes' own disks, and each n-th is
// copied into shared storage behind the job. The service copies the newest as soon as the policy's part of
// the bandwidth allows for what is new since the last copied one. Here n is the smallest number for which
// that is so in the mean. The first image is copied as soon as it counts.
#pragma once

#include <vector>

#include "model/policy.h"
#include "sim/draw.h"
#include "sim/image_row.h"

namespace siding::sim {

// One that writes nearly all of its memory between two images is not.
bool IsTracked(const Parameters& parameters);
// The images of a protected job.
const ImageRow& RowOf(const Parameters& parameters);

// Work of a job that it does not have to do again.
struct Saved {
  double work = 0;      // seconds; 0: nothing is
  bool shares = false;  // the image that has it shares pages with others
};

class ProtectionSchedule {
 public:
  // None.
  ProtectionSchedule() = default;
  // As the policy asks for; `machine`: nodes of all.
  ProtectionSchedule(const Job& job, const Policy& policy, const Parameters& parameters, int machine);

  bool protects() const { return !images_.empty(); }
  // From one order to the next, once the first images are behind it; the mean.
  double interval() const;
  // The same from one copy to the next; 0: nothing is copied.
  double copy_interval() const { return interval() * copy_each_; }

  // What is done after so long, and the other way round.
  double Work(double computing) const;
  double TimeFor(double work) const;
  // Of the rest, for how long it stood still.
  double Stopped(double computing) const;

  // Of the work, what an image has that counts by then; 0: none does.
  double Durable(double computing) const;
  // That image shares pages with those before it.
  bool SharesPages(double computing) const;
  // The same of the newest image that is in shared storage: what is left when a node is lost.
  Saved Copied(double computing) const;
  // Bytes of all nodes that the newest image needs and shared storage has not; kNever: it is not to be
  // copied.
  double Uncopied(double computing) const;
  // Nothing that ends the job then loses more of its work, as the service says; 0: that is not promised.
  double MostLost(double computing) const;
  // When an image counts that has been begun; 0: none is under way.
  double BusyUntil(double computing) const;
  // Bytes of all nodes in images that have been begun by then.
  double Written(double computing) const;
  // The same of copies, once they are there.
  double WrittenByCopies(double computing) const;

 private:
  // All sums are those when it is begun.
  struct Image {
    double begin = 0;
    double work = 0, stopped = 0, written = 0;
    double stop = 0, takes = 0, bytes = 0;
    double faults = 0;     // seconds that page faults cost until the next one
    double most_lost = 0;  // once it counts
    bool shares = false;
    double ready() const { return begin + takes; }
  };
  // A moment, with whole rounds of the images that come again and again taken off.
  struct Moment {
    double rounds = 0;
    double computing = 0;
    int image = -1;  // the last that has been begun; -1: none
  };

  Image NextTo(const Image& last, double interval) const;
  Moment Find(double computing) const;
  // What follows an image, be it the first of the next round.
  const Image& After(int image) const;

  // Images are numbered through all rounds; -1: none. The newest that counts.
  double Newest(double computing) const;
  Image Numbered(double number) const;

  // ---- copies ----
  double NewestCopied(double computing) const;
  double CopyTakes(double number) const { return number == 0 ? first_copy_takes_ : copy_takes_; }

  std::vector<Image> images_;
  // As images_[kFirst], one round later.
  Image end_;

  bool is_local_ = false;  // images are on the nodes' own disks
  const ImageRow* row_ = nullptr;
  double bytes_ = 0;      // memory on all nodes
  double copy_each_ = 0;  // so many-th image is copied; 0: none is
  double first_copy_takes_ = 0, copy_takes_ = 0;
};

}  // namespace siding::sim
