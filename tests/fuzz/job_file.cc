// What users write: job files, and single values of flags.
#include "cli/job_file.h"

#include "cli/sbatch.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const std::string text = fuzz::TextOf(data, size);
  v1::JobSpec spec;
  if (cli::ParseJobFile(text, "job.yaml", FromMicros(1'700'000'000'000'000), spec).ok()) {
    cli::SbatchCommand(spec).status().IgnoreError();
  }
  cli::SplitCommand(text).status().IgnoreError();
  v1::AppMethod app;
  cli::ParseAppSignal(text, app).IgnoreError();
  return 0;
}
