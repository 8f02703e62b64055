// Slurm's small languages: lists of nodes, time limits, generic resources, lists of GPUs, and the marks in
// comments.
#include "agent/gpu/allocated_gpus.h"
#include "controller/platform/slurm/client/hostlist.h"
#include "controller/platform/slurm/client/marks.h"
#include "controller/platform/slurm/client/queue.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const std::string text = fuzz::TextOf(data, size);
  if (const auto nodes = slurm::ExpandHostlist(text); nodes.ok() && nodes->size() < 1000) {
    const auto again = slurm::ExpandHostlist(slurm::JoinHostlist(*nodes));
    fuzz::Expect(again.ok() && *again == *nodes, "nodes that were written are read as the same");
  }
  if (const auto limit = slurm::ParseLimit(text); limit.ok() && *limit)
    fuzz::Expect(**limit >= Duration(0) && **limit <= kLongestDuration, "a limit can be computed with");
  fuzz::Expect(slurm::GpusOf(text) >= 0, "there are no fewer GPUs than none");
  ReadGpuList(text).status().IgnoreError();
  slurm::StartByOf(text);
  const auto mark = slurm::MarkOf(text);
  fuzz::Expect(slurm::MarkOf(slurm::WithMark(text, slurm::Mark{.pinned = true, .why = text})).has_value(),
               "a mark that was made is found");
  if (mark)
    fuzz::Expect(slurm::MarkOf(slurm::WithMark(text, mark)) == mark, "a mark is read as it was written");
  return 0;
}
