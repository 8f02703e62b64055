#include "controller/platform/slurm/client/settings.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kConfig[] =
    "Configuration data as of 2026-11-21T09:05:06\n"
    "AuthInfo                = socket=/run/munge/s,cred_expire=5\n"
    "JobFileAppend           = 1\n"
    "JobRequeue              = 1\n"
    "RequeueExit             = 99\n"
    "RequeueExitHold         = 98\n"
    "SLURM_VERSION           = 22.05.8\n"
    "TaskProlog              = (null)\n"
    "\nSlurmctld(primary) at host is UP\n";

TEST(Settings, AreReadAsSlurmPrintsThem) {
  const auto settings = ParseSettings(kConfig);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(settings->requeue_exits, ElementsAre(99));
  EXPECT_THAT(settings->requeue_hold_exits, ElementsAre(98));
  EXPECT_TRUE(settings->requeues);
  EXPECT_TRUE(settings->keeps_output);
  EXPECT_THAT(ProblemsOf(*settings), IsEmpty());
}

TEST(Settings, WaitingMakesPrioritiesDifferOnlyIfTheyHaveFactors) {
  EXPECT_EQ(ParseSettings(kConfig)->priority_by_age, 0);
  const std::string factors = "SLURM_VERSION = 22.05.8\nPriorityType = priority/multifactor\n";
  EXPECT_EQ(ParseSettings(factors + "PriorityWeightAge = 5000\n")->priority_by_age, 5001);
  EXPECT_EQ(ParseSettings(factors)->priority_by_age, 1);
}

TEST(Settings, EachProblemNamesItsSetting) {
  const auto settings =
      ParseSettings("SLURM_VERSION = 22.05.8\nRequeueExit = (null)\nRequeueExitHold = 99\nJobRequeue = 0\n");
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(ProblemsOf(*settings),
              ElementsAre(HasSubstr("RequeueExit lacks 99"), HasSubstr("RequeueExitHold lacks 98"),
                          HasSubstr("JobRequeue"), HasSubstr("JobFileAppend")));
}

TEST(Settings, ATaskPrologIsNotRun) {
  std::string config = kConfig;
  config.replace(config.find("(null)"), 6, "/etc/slurm/task_prolog");
  const auto settings = ParseSettings(config);
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(ProblemsOf(*settings), ElementsAre(HasSubstr("TaskProlog is /etc/slurm/task_prolog")));
}

TEST(Settings, ExitCodesMayBeRanges) {
  EXPECT_THAT(ParseExits("5,97-99"), ElementsAre(5, 97, 98, 99));
  EXPECT_THAT(ParseExits("254-4000000"), ElementsAre(254, 255));
  EXPECT_THAT(ParseExits("(null)"), IsEmpty());
}

TEST(Settings, AnErrorMessageIsNone) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(ParseSettings("slurm_load_ctl_conf error: Unable to contact").status()));
}

}  // namespace
}  // namespace siding::slurm
