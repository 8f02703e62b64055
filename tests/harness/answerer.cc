// Answers Slurm's plugin in the controller's place, for tests, until its input ends.
//
//   siding-test-answerer SOCKET promise SECONDS    every job starts so long from now
//   siding-test-answerer SOCKET refuse REASON
//
// Writes one line of JSON for each question: who asked, the options, and the request that they are.
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/clock.h"
#include "controller/platform/slurm/submit/question_listener.h"

namespace siding::slurm {
namespace {

using Json = nlohmann::json;

Json ToJson(const JobSpec& spec) {
  return {{"name", spec.name},
          {"nodes", spec.nodes},
          {"slots", spec.per_node.slots},
          {"memory", spec.per_node.memory.value},
          {"gpus", spec.per_node.gpus},
          {"hold", ToSeconds(spec.hold)},
          {"labels", spec.labels}};
}

class GivenAnswer final : public Answerer {
 public:
  GivenAnswer(const std::string& verb, const std::string& value) : verb_(verb), value_(value) {}
  absl::StatusOr<Time> WhenWouldItStart(const Question& question) override {
    const auto spec = SpecOf(question);
    const Json line = {{"uid", question.uid},
                       {"start_by", ToMicros(question.start_by)},
                       {"not_before", question.not_before ? Json(ToMicros(*question.not_before)) : Json()},
                       {"options", question.options},
                       {"spec", spec.ok() ? ToJson(*spec) : Json()}};
    std::cout << line << std::endl;
    if (!spec.ok()) return spec.status();
    if (verb_ == "refuse") return absl::FailedPreconditionError(value_);
    return SystemClock().Now() + std::chrono::seconds(std::stoi(value_));
  }

 private:
  const std::string verb_, value_;
};

}  // namespace
}  // namespace siding::slurm

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: siding-test-answerer SOCKET promise SECONDS | SOCKET refuse REASON\n";
    return 2;
  }
  siding::slurm::GivenAnswer answer(argv[2], argv[3]);
  const auto listener = siding::slurm::QuestionListener::Start(argv[1], answer);
  if (!listener.ok()) {
    std::cerr << listener.status() << "\n";
    return 1;
  }
  while (std::cin.get() != EOF) {
  }
  return 0;
}
