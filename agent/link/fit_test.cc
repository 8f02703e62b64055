// No message of an agent is longer than what a controller takes.
#include "agent/link/fit.h"

#include <string>

#include "common/message_limits.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(Fit, AnOrdinaryMessageStaysAsItIs) {
  v1::FromAgent message;
  message.mutable_report()->set_error(std::string(10'000, 'x'));
  const std::string before = message.SerializeAsString();
  EXPECT_TRUE(Fit(message));
  EXPECT_EQ(message.SerializeAsString(), before);
}
TEST(Fit, LongTextsOfManyTasksAreCutAndNoTaskIsLeftOut) {
  v1::FromAgent message;
  for (int i = 0; i < 2000; ++i) {
    v1::TaskReport& report = *message.mutable_heartbeat()->add_tasks();
    report.mutable_task()->set_job(i);
    report.set_cannot_checkpoint(std::string(4000, 'x'));
    report.set_timer(std::string(4000, 'x'));
    report.add_notes(std::string(4000, 'y'));
    report.add_notes("z");
  }
  EXPECT_TRUE(Fit(message));
  EXPECT_LE(message.ByteSizeLong(), kMostFromAgent);
  ASSERT_EQ(message.heartbeat().tasks_size(), 2000);
  EXPECT_EQ(message.heartbeat().tasks(1999).notes_size(), 2);
}
TEST(Fit, OfManyNotesTheFirstAreTold) {
  v1::FromAgent message;
  v1::TaskReport& report = *message.mutable_hello()->add_tasks();
  for (int i = 0; i < 20'000; ++i) report.add_notes(std::string(300, 'x'));
  EXPECT_TRUE(Fit(message));
  EXPECT_EQ(message.hello().tasks(0).notes_size(), kMostNotes);
}
TEST(Fit, SoAreThoseOfAHello) {
  v1::FromAgent message;
  for (int i = 0; i < 2000; ++i) message.mutable_hello()->add_tasks()->set_error(std::string(4000, 'x'));
  EXPECT_TRUE(Fit(message));
  EXPECT_EQ(message.hello().tasks_size(), 2000);
}
TEST(Fit, OfManyDamagedImagesTheFirstAreTold) {
  v1::FromAgent message;
  for (int i = 0; i < 100'000; ++i)
    message.mutable_heartbeat()->add_damaged()->set_problem(std::string(100, 'x'));
  EXPECT_TRUE(Fit(message));
  EXPECT_EQ(message.heartbeat().damaged_size(), 1000);
}
TEST(Fit, OfManyFilesTheFirstAreTold) {
  v1::FromAgent message;
  for (int i = 0; i < 100'000; ++i) message.mutable_result()->add_files()->set_name(std::string(100, 'x'));
  EXPECT_TRUE(Fit(message));
  EXPECT_EQ(message.result().files_size(), 1000);
}
TEST(Fit, WhatCannotBeCutIsSaid) {
  v1::FromAgent message;
  for (int i = 0; i < 1'000'000; ++i) message.mutable_hello()->add_tasks()->mutable_task()->set_job(i + 1);
  EXPECT_FALSE(Fit(message));
}

}  // namespace
}  // namespace siding
