#include "agent/shim/failed_start.h"

#include "absl/strings/str_cat.h"

namespace siding {

spank::StepWord JudgeFailedStart(uint32_t restarts, const agent::TaskRecord* record) {
  const bool nothing_kept = restarts == 0 || (record != nullptr && !record->restored());
  if (nothing_kept) return spank::StepWord::kNotStarted;
  // An image of the first start is tried at the second one for the first time, and so on. Where it is not
  // known of which start it is, starts that succeeded count as well: that leads to a hold too early,
  // never to work that is lost.
  const int made_in = record == nullptr ? 0 : record->image_incarnation();
  return spank::AfterFailedStart(static_cast<int>(restarts) - made_in + 1);
}

spank::StepWord JudgePutOff(uint32_t restarts, const agent::TaskRecord* record) {
  const spank::StepWord word = JudgeFailedStart(restarts, record);
  return word == spank::StepWord::kNotStarted ? spank::AfterFailedStart(static_cast<int>(restarts) + 1)
                                              : word;
}

std::string TellFailedStart(spank::StepWord word, const absl::Status& why) {
  const char* const what = word == spank::StepWord::kComeBack
                               ? "the job goes back into the queue, to be tried again"
                           : word == spank::StepWord::kHold
                               ? "the job is held after many failed starts: scontrol release tries again"
                               : "the command starts from its beginning, not preemptible";
  return absl::StrCat(std::string(why.message()), "; ", what);
}

}  // namespace siding
