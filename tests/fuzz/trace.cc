// Workload traces for the simulator. The first byte says in which format.
#include "sim/trace.h"

#include <sstream>

#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  if (size == 0) return 0;
  std::istringstream in(fuzz::TextOf(data + 1, size - 1));
  const auto trace = data[0] == 'p' ? sim::ReadPhilly(in, "trace") : sim::ReadSwf(in, "trace");
  if (!trace.ok()) return 0;
  for (const sim::TraceJob& job : trace->jobs)
    fuzz::Expect(job.nodes >= 1 && job.runtime > 0 && job.requested >= job.runtime && job.submit >= 0,
                 "a job of a trace can be simulated");
  return 0;
}
