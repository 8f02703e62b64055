#include "agent/checkpoint/timers.h"

#include <signal.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

std::string PosixTimer(int clock) {
  return absl::StrCat("ID: 0\nsignal: 14/0000000000000000\nnotify: signal/pid.17\nClockID: ", clock, "\n");
}

TEST(PosixTimers, ThoseOfARealTimeClockRunOn) {
  EXPECT_EQ(PosixTimerThatRunsOn(PosixTimer(CLOCK_REALTIME)), "a POSIX timer on CLOCK_REALTIME");
  EXPECT_EQ(PosixTimerThatRunsOn(PosixTimer(CLOCK_MONOTONIC)), "a POSIX timer on CLOCK_MONOTONIC");
  EXPECT_EQ(PosixTimerThatRunsOn(PosixTimer(CLOCK_BOOTTIME)), "a POSIX timer on CLOCK_BOOTTIME");
  EXPECT_EQ(PosixTimerThatRunsOn(PosixTimer(77)), "a POSIX timer on clock 77");
}

TEST(PosixTimers, ThoseOfCpuTimeStandStill) {
  EXPECT_EQ(PosixTimerThatRunsOn(PosixTimer(CLOCK_PROCESS_CPUTIME_ID)), "");
  EXPECT_EQ(PosixTimerThatRunsOn(PosixTimer(CLOCK_THREAD_CPUTIME_ID)), "");
  EXPECT_EQ(PosixTimerThatRunsOn(PosixTimer(-142)), "") << "another process's (clock_getcpuclockid)";
}

TEST(PosixTimers, OneAmongOthersIsFound) {
  const std::string timers = PosixTimer(CLOCK_PROCESS_CPUTIME_ID) + PosixTimer(CLOCK_MONOTONIC);
  EXPECT_EQ(PosixTimerThatRunsOn(timers), "a POSIX timer on CLOCK_MONOTONIC");
}

TEST(PosixTimers, NoTextNoTimer) {
  EXPECT_EQ(PosixTimerThatRunsOn(""), "");
  EXPECT_EQ(PosixTimerThatRunsOn("ClockID:"), "");
}

std::string Timerfd(int clock, int flags, int nanoseconds, int interval = 0) {
  return absl::StrCat("pos:\t0\nflags:\t02\nclockid: ", clock, "\nticks: 0\nsettime flags: 0", flags,
                      "\nit_value: (0, ", nanoseconds, ")\nit_interval: (", interval, ", 0)\n");
}

TEST(Timerfds, OneThatIsSetRunsOn) {
  EXPECT_EQ(TimerfdThatRunsOn(Timerfd(CLOCK_MONOTONIC, 0, 1)), "a timerfd on CLOCK_MONOTONIC");
  EXPECT_EQ(TimerfdThatRunsOn(Timerfd(CLOCK_REALTIME, 0, 1)), "a timerfd on CLOCK_REALTIME");
  EXPECT_EQ(TimerfdThatRunsOn(Timerfd(CLOCK_MONOTONIC, 1, 1)), "a timerfd on CLOCK_MONOTONIC");
}

TEST(Timerfds, SoDoesOneThatRepeats) {
  EXPECT_EQ(TimerfdThatRunsOn(Timerfd(CLOCK_MONOTONIC, 1, 1, 2)), "a timerfd on CLOCK_MONOTONIC");
}

TEST(Timerfds, OneThatIsNotSetDoesNotCount) {
  EXPECT_EQ(TimerfdThatRunsOn(Timerfd(CLOCK_MONOTONIC, 0, 0)), "");
  EXPECT_EQ(TimerfdThatRunsOn(""), "");
}

TEST(Timerfds, OneThatIsSetToATimeOfDayDoesNotCount) {
  EXPECT_EQ(TimerfdThatRunsOn(Timerfd(CLOCK_REALTIME, 1, 1)), "");
  EXPECT_EQ(TimerfdThatRunsOn(Timerfd(CLOCK_REALTIME_ALARM, 3, 1)), "") << "with TFD_TIMER_CANCEL_ON_SET";
}

// As the kernel tells it of this process.
class OwnTimersTest : public ::testing::Test {
 protected:
  static std::string Find() { return FindTimer({getpid()}, FindDescriptors({getpid()}).all); }
};

TEST_F(OwnTimersTest, APosixTimerIsFoundWithItsProcess) {
  ASSERT_EQ(Find(), "");
  timer_t timer;
  sigevent none = {};
  none.sigev_notify = SIGEV_NONE;
  ASSERT_EQ(timer_create(CLOCK_REALTIME, &none, &timer), 0);
  EXPECT_EQ(Find(), absl::StrCat("process ", getpid(), " (", ProgramOf(getpid()),
                                 ") has a POSIX timer on CLOCK_REALTIME"));
  timer_delete(timer);
}

TEST_F(OwnTimersTest, ATimerOfCpuTimeIsNot) {
  timer_t timer;
  sigevent none = {};
  none.sigev_notify = SIGEV_NONE;
  ASSERT_EQ(timer_create(CLOCK_PROCESS_CPUTIME_ID, &none, &timer), 0);
  EXPECT_EQ(Find(), "");
  timer_delete(timer);
}

TEST_F(OwnTimersTest, ATimerfdIsFoundWhileItIsSet) {
  const UniqueFd fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  ASSERT_TRUE(fd.valid());
  EXPECT_EQ(Find(), "");
  itimerspec when = {};
  when.it_value.tv_sec = 1000;
  timerfd_settime(fd.get(), 0, &when, nullptr);
  EXPECT_THAT(Find(), HasSubstr(") has a timerfd on CLOCK_MONOTONIC"));
  when = {};
  timerfd_settime(fd.get(), 0, &when, nullptr);
  EXPECT_EQ(Find(), "");
}

}  // namespace
}  // namespace siding
