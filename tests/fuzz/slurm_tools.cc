// What Slurm's command-line tools print, with whatever users have put into names and comments. The first byte
// says which.
#include "controller/platform/slurm/client/settings.h"
#include "controller/platform/slurm/client/tool_output.h"
#include "controller/platform/slurm/watch/changes.h"
#include "controller/platform/slurm/watch/translate.h"
#include "tests/fuzz/input.h"

namespace siding::slurm {
namespace {

std::string NoName(uint32_t uid) { return std::to_string(uid); }

void Read(char which, const std::string& text) {
  Changes changes;
  switch (which) {
    case 'j':
      if (const auto jobs = ParseQueue(text); jobs.ok()) {
        for (const QueueJob& job : *jobs) changes.jobs.push_back({{}, job});
      }
      break;
    case 'n':
      if (const auto nodes = ParseNodes(text); nodes.ok()) {
        for (const QueueNode& node : *nodes) changes.nodes.push_back({{}, node});
      }
      break;
    case 'p':
      ParsePartitions(text).status().IgnoreError();
      break;
    case 'r':
      if (const auto reservations = ParseReservations(text); reservations.ok())
        ReservedByOthers(*reservations, FromMicros(1'700'000'000'000'000));
      break;
    case 's':
      if (const auto settings = ParseSettings(text); settings.ok()) ProblemsOf(*settings);
      break;
  }
  const Inventory partitions = {.partitions = {{.name = "debug", .grace = std::chrono::seconds(30)}}};
  ManagerChangesOf(changes, WithNodes(partitions, changes.nodes), NoName);
}

}  // namespace
}  // namespace siding::slurm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) siding::slurm::Read(static_cast<char>(data[0]), siding::fuzz::TextOf(data + 1, size - 1));
  return 0;
}
