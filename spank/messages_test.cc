#include "spank/messages.h"

#include <string>

#include "gtest/gtest.h"

namespace siding::spank {
namespace {

std::string Format(const Registration& registration) {
  char text[kMaxMessage];
  return {text, FormatRegistration(registration, text, sizeof text)};
}

bool Parse(const std::string& text, Answer& answer) { return ParseAnswer(text.data(), text.size(), answer); }

TEST(Messages, ARegistrationSaysWhoItIs) {
  Registration r;
  r.job = 42;
  r.uid = 1000;
  r.gid = 100;
  EXPECT_EQ(Format(r), "siding-register 1\njob 42\nstep batch\ntask 0\ntasks 1\nuid 1000\ngid 100\n");
}

TEST(Messages, ARegistrationSaysWhatWasAsked) {
  Registration r;
  r.step = 3;
  r.options.methods = kCheckpoint | kApp;
  r.options.checkpoint_interval_us = 5;
  r.options.checkpoint_signal = 10;
  r.options.signal_grace_us = 6;
  r.options.notice_us = 7;
  r.options.gpu_collectives = Collectives::kDrainable;
  r.options.allow_io_uring = true;
  r.options.max_preemptions = 0;
  r.options.append_files = true;
  r.options.keep_connections = true;
  const std::string text = Format(r);
  EXPECT_NE(text.find("\nstep 3\n"), std::string::npos);
  EXPECT_NE(
      text.find(
          "\nmethods checkpoint,app\ncheckpoint-interval-us 5\ncheckpoint-signal 10\nsignal-grace-us 6\n"
          "notice-us 7\ngpu-collectives 2\nallow-io-uring 1\nmax-preemptions 0\nappend-files "
          "1\nkeep-connections 1\n"),
      std::string::npos);
}

TEST(Messages, ARegistrationThatDoesNotFitIsNone) {
  char text[40];
  EXPECT_EQ(FormatRegistration({}, text, sizeof text), 0u);
}

TEST(Messages, AnAcceptanceNamesTheFolder) {
  Answer answer;
  ASSERT_TRUE(Parse("siding-accepted 1\nfolder /a b\nlater x\n", answer));
  EXPECT_EQ(answer.kind, AnswerKind::kAccepted);
  EXPECT_STREQ(answer.folder, "/a b");
}

TEST(Messages, ARefusalHasAReason) {
  Answer answer;
  ASSERT_TRUE(Parse("siding-refused 1\nreason because\n", answer));
  EXPECT_EQ(answer.kind, AnswerKind::kRefused);
  EXPECT_STREQ(answer.reason, "because");
}

TEST(Messages, APromiseSaysWhen) {
  Answer answer;
  ASSERT_TRUE(Parse("siding-promised 1\nstarts-us 1795262400000000\n", answer));
  EXPECT_EQ(answer.kind, AnswerKind::kPromised);
  EXPECT_EQ(answer.starts_us, 1795262400000000);
}

TEST(Messages, AQuestionNamesTheOptionsThatWereGiven) {
  const GivenOption options[] = {{"nodes", "2"}, {"mem", nullptr}, {"job-name", "a\nb"}};
  char text[kMaxMessage];
  const size_t length = FormatQuestion({7, 0, options, 3}, text, sizeof text);
  EXPECT_EQ(std::string(text, length),
            "siding-question 1\nstart-by-us 7\noption nodes 2\noption job-name a b\n");
}

TEST(Messages, AQuestionForLaterSaysSo) {
  char text[kMaxMessage];
  const size_t length = FormatQuestion({7, 6, nullptr, 0}, text, sizeof text);
  EXPECT_EQ(std::string(text, length), "siding-question 1\nstart-by-us 7\nnot-before-us 6\n");
}

TEST(Messages, AQuestionThatDoesNotFitIsNone) {
  const std::string name(100, 'x');
  const GivenOption options[] = {{"job-name", name.c_str()}};
  char text[100];
  EXPECT_EQ(FormatQuestion({7, 0, options, 1}, text, sizeof text), 0u);
}

TEST(Messages, WhatIsNoAnswerIsRefused) {
  for (const std::string text : {"siding-promised 1\n", "siding-promised 1\nstarts-us soon\n", "", "\n",
                                 "siding-go", "siding-go 2\n", "siding-register 1\n", "siding-accepted 1\n",
                                 "siding-accepted 1\nfolder a\n", "siding-accepted 1\nfolder /a"}) {
    Answer answer;
    EXPECT_FALSE(Parse(text, answer)) << text;
  }
  Answer answer;
  EXPECT_FALSE(Parse("siding-refused 1\nreason " + std::string(kMaxPath, 'x') + "\n", answer));
}

}  // namespace
}  // namespace siding::spank
