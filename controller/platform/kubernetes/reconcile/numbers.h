// The numbers of jobs: none is given twice, whichever controller gives it.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/reconcile/seal.h"
#include "controller/platform/kubernetes/watch/job_table.h"

namespace siding::kubernetes {

// The next number that is free lies in a ConfigMap, `data.next`. As many as are needed are taken at a time,
// by a change that another's change in between makes fail; what is left of these is lost with its controller.
// Not thread-safe.
class Numbers {
 public:
  // The client must outlive it. `where`: of the ConfigMap, which is made when it is not there.
  Numbers(ApiClient& client, ObjectName where) : client_(client), where_(std::move(where)) {}

  // One beyond `highest`, which somebody has: the ConfigMap may have been deleted. `needed`: so many are
  // asked for now, this one included. kFailedPrecondition: the ConfigMap has no number in it that could be
  // the next; somebody has to mend it.
  absl::StatusOr<JobId> Next(JobId highest, int64_t needed = 1);

 private:
  absl::Status TakeBlock(int64_t least, int64_t size);

  ApiClient& client_;
  const ObjectName where_;
  int64_t next_ = 0;
  int64_t end_ = 0;  // of the block
};

// Hears of each pod whether its number was written. An error is its own: the others get theirs, but for the
// rest of its gang, since it is not known what this one has.
using OnNumbered = std::function<void(const JobTable::Unnumbered& pod, const absl::Status& written)>;

// Writes a number on each of these pods, its gang's or the next, with its seal. An error is nobody's own: the
// rest was not tried. kAborted, to `heard`: a pod has changed meanwhile; it is looked at again when that is
// told.
absl::Status NumberPods(const JobTable::Without& pods, Numbers& numbers, const Seal& seal, ApiClient& client,
                        const OnNumbered& heard);

}  // namespace siding::kubernetes
