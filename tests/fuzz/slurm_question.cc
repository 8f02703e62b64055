// What Slurm's plugin asks the controller; any local user can. What it is answered, the plugin must
// understand.
#include "common/status.h"
#include "controller/platform/slurm/submit/question.h"
#include "spank/messages.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const auto answered = [&]() -> absl::StatusOr<Time> {
    SIDING_ASSIGN_OR_RETURN(const slurm::Question question, slurm::ParseQuestion(fuzz::TextOf(data, size)));
    SIDING_ASSIGN_OR_RETURN(const JobSpec spec, slurm::SpecOf(question));
    return spec.start_by;
  }();
  const std::string text = slurm::AnswerText(answered);
  spank::Answer answer;
  fuzz::Expect(text.size() <= spank::kMaxMessage && spank::ParseAnswer(text.data(), text.size(), answer),
               "the plugin understands the answer");
  return 0;
}
