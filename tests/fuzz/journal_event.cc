// Events as the journal keeps them: a line each, its kind and its JSON. What was read is applied, as after a
// restart.
#include "controller/engine/state/cluster_state.h"
#include "controller/journal/journal.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const std::string text = fuzz::TextOf(data, size);
  ClusterState state;
  int64_t seq = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const size_t blank = std::min(line.find(' '), line.size());
    const auto body = DecodeEventBody(line.substr(0, blank), line.substr(blank));
    at = end + 1;
    if (!body.ok()) continue;
    const Event event{++seq, FromMicros(1'700'000'000'000'000 + seq), JobId(1), *body};
    fuzz::Expect(DecodeEventBody(BodyKind(*body), EncodeEventBody(event)).ok(),
                 "an event that was written is read");
    Describe(event);
    Apply(state, event);
  }
  return 0;
}
