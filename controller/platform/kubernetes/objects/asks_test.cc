#include "controller/platform/kubernetes/objects/asks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using Said = std::map<std::string, std::string>;

Pod Saying(const Said& said) {
  Pod pod;
  pod.created = Time(std::chrono::seconds(100));
  pod.said = said;
  return pod;
}
Ask Read(const Said& said) {
  const auto ask = AskOf(Saying(said));
  EXPECT_TRUE(ask.ok()) << ask.status();
  EXPECT_TRUE(ask.ok() && ask->has_value());
  return ask.ok() && *ask ? **ask : Ask();
}
std::string ErrorOf(const Said& said) { return std::string(AskOf(Saying(said)).status().message()); }

TEST(AskOf, APodThatSaysNothingIsLeftAlone) {
  EXPECT_EQ(*AskOf(Saying({})), std::nullopt);
  EXPECT_EQ(*AskOf(Saying({{"job", "7"}, {"status", "is to start"}})), std::nullopt);
}
TEST(AskOf, BatchWork) {
  const Ask ask = Read({{"preemptible", "checkpoint, kill"},
                        {"checkpoint-interval", "10m"},
                        {"max-preemptions", "3"},
                        {"notice", "30s"}});
  EXPECT_EQ(ask.methods, (MethodSet{Method::kCheckpoint, Method::kKill}));
  EXPECT_EQ(ask.checkpoint_interval, std::chrono::minutes(10));
  EXPECT_EQ(ask.max_preemptions, 3);
  EXPECT_EQ(ask.notice, std::chrono::seconds(30));
}
TEST(AskOf, ADeadlineIsATimeOrSoLongAfterThePodWasMade) {
  EXPECT_EQ(Read({{"start-by", "1970-01-01T00:05:00Z"}}).start_by, Time(std::chrono::seconds(300)));
  const Ask ask = Read({{"start-by", "+60s"}, {"not-before", "+10s"}, {"walltime", "1h"}});
  EXPECT_EQ(ask.start_by, Time(std::chrono::seconds(160)));
  EXPECT_EQ(ask.not_before, Time(std::chrono::seconds(110)));
  EXPECT_EQ(ask.walltime, std::chrono::hours(1));
}
TEST(AskOf, AGangHasANameAndASize) {
  const Ask ask = Read({{"start-by", "+60s"}, {"gang", "g"}, {"gang-size", "4"}});
  EXPECT_EQ(ask.gang, "g");
  EXPECT_EQ(ask.gang_size, 4);
}
TEST(AskOf, WhatIsWrongIsNamedWithWhatWasExpected) {
  const std::string one_of = "suspend, checkpoint and kill, or some of them, with commas between";
  for (const auto& [said, error] : std::vector<std::pair<Said, std::string>>{
           {{{"premptible", "kill"}}, "siding.dev/premptible: expected a name that siding knows"},
           {{{"preemptible", "stop"}}, "siding.dev/preemptible: expected " + one_of},
           {{{"preemptible", "app"}}, "siding.dev/preemptible: expected " + one_of},
           {{{"preemptible", ""}}, "siding.dev/preemptible: expected " + one_of},
           {{{"start-by", "soon"}},
            "siding.dev/start-by: expected a time such as 2026-05-01T12:00:00Z or +60s"},
           {{{"start-by", "+9s"}, {"walltime", "0s"}},
            "siding.dev/walltime: expected a duration such as 30s or 10m"},
           {{{"preemptible", "kill"}, {"max-preemptions", "-1"}},
            "siding.dev/max-preemptions: expected a whole number from 0 to 1000000"},
           {{{"start-by", "+9s"}, {"gang", std::string(64, 'g')}, {"gang-size", "2"}},
            "siding.dev/gang: expected a name of at most 63 bytes"},
           {{{"start-by", "+9s"}, {"gang", "g"}, {"gang-size", "0"}},
            "siding.dev/gang-size: expected a whole number from 1 to 10000"},
       }) {
    EXPECT_EQ(ErrorOf(said), error);
  }
}
TEST(AskOf, WhatDoesNotGoTogetherIsNamed) {
  for (const auto& [said, error] : std::vector<std::pair<Said, std::string>>{
           {{{"start-by", "+9s"}, {"preemptible", "kill"}},
            "siding.dev/preemptible: expected nothing beside start-by: a pod with a deadline makes way for "
            "nobody"},
           {{{"notice", "9s"}}, "siding.dev/preemptible: expected it, or start-by, beside the others"},
           {{{"preemptible", "kill"}, {"walltime", "9s"}},
            "siding.dev/walltime: expected nothing without start-by"},
           {{{"start-by", "+9s"}, {"notice", "9s"}}, "siding.dev/notice: expected nothing beside start-by"},
           {{{"preemptible", "kill"}, {"checkpoint-interval", "9s"}},
            "siding.dev/checkpoint-interval: expected checkpoint among the methods of preemptible"},
           {{{"start-by", "+9s"}, {"not-before", "+10s"}},
            "siding.dev/not-before: expected a time before start-by"},
           {{{"start-by", "+9s"}, {"gang", "g"}},
            "siding.dev/gang-size: expected gang and gang-size together"},
           {{{"start-by", "+9s"}, {"gang-size", "2"}},
            "siding.dev/gang-size: expected gang and gang-size together"},
       }) {
    EXPECT_EQ(ErrorOf(said), error);
  }
}

}  // namespace
}  // namespace siding::kubernetes
