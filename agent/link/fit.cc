#include "agent/link/fit.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/message_limits.h"

namespace siding {
namespace {

constexpr size_t kLongestText = 256;
constexpr int kMostDamaged = 1000;  // those that are left out are told when these have been dealt with
constexpr int kMostFiles = 1000;

void Cut(std::string& text) {
  if (text.size() > kLongestText) text.resize(kLongestText);
}

template <class List>
void KeepFirst(List& list, int most) {
  if (list.size() > most) list.DeleteSubrange(most, list.size() - most);
}

// Notes are counted by the controller, from the first: none before others is left out.
void Shorten(v1::TaskReport& report) {
  Cut(*report.mutable_error());
  Cut(*report.mutable_cannot_checkpoint());
  Cut(*report.mutable_cannot_drain());
  Cut(*report.mutable_gpu_state_lost());
  Cut(*report.mutable_timer());
  KeepFirst(*report.mutable_notes(), kMostNotes);
  for (std::string& note : *report.mutable_notes()) Cut(note);
}

}  // namespace

bool Fit(v1::FromAgent& message) {
  if (message.ByteSizeLong() <= kMostFromAgent) return true;
  if (message.has_hello())
    for (v1::TaskReport& report : *message.mutable_hello()->mutable_tasks()) Shorten(report);
  if (message.has_heartbeat()) {
    for (v1::TaskReport& report : *message.mutable_heartbeat()->mutable_tasks()) Shorten(report);
    auto& damaged = *message.mutable_heartbeat()->mutable_damaged();
    KeepFirst(damaged, kMostDamaged);
    for (v1::DamagedImage& image : damaged) Cut(*image.mutable_problem());
  }
  if (message.has_report()) Shorten(*message.mutable_report());
  if (message.has_result()) {
    v1::OpResult& result = *message.mutable_result();
    Cut(*result.mutable_message());
    KeepFirst(*result.mutable_files(), kMostFiles);
  }
  return message.ByteSizeLong() <= kMostFromAgent;
}

}  // namespace siding
