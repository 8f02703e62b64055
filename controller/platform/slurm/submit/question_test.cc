#include "controller/platform/slurm/submit/question.h"

#include "gtest/gtest.h"
#include "spank/messages.h"

namespace siding::slurm {
namespace {

std::string MessageOf(const std::string& text) { return std::string(ParseQuestion(text).status().message()); }

TEST(ParseQuestion, ReadsWhatThePluginWrites) {
  const spank::GivenOption options[] = {{"nodes", "2"}, {"mem", nullptr}, {"job-name", "a b"}};
  char text[spank::kMaxMessage];
  const size_t length = spank::FormatQuestion({7, 6, options, 3}, text, sizeof text);
  const auto question = ParseQuestion(std::string(text, length));
  ASSERT_TRUE(question.ok()) << question.status();
  EXPECT_EQ(question->start_by, FromMicros(7));
  EXPECT_EQ(question->not_before, FromMicros(6));
  EXPECT_EQ(question->options, (std::map<std::string, std::string>{{"nodes", "2"}, {"job-name", "a b"}}));
}

TEST(ParseQuestion, LinesOfALaterPluginAreSkipped) {
  EXPECT_TRUE(ParseQuestion("siding-question 1\nstart-by-us 7\nlater x\n").ok());
}

TEST(ParseQuestion, AnotherVersionIsToldFromNonsense) {
  EXPECT_TRUE(absl::IsUnimplemented(ParseQuestion("siding-question 2\nstart-by-us 7\n").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseQuestion("hello\n").status()));
}

TEST(ParseQuestion, AWrongLineIsNamed) {
  EXPECT_EQ(MessageOf("siding-question 1\nstart-by-us soon\n"),
            "the question's line 'start-by-us soon': expected a time in microseconds since 1970");
  EXPECT_EQ(MessageOf("siding-question 1\n"), "the question lacks the line 'start-by-us'");
  EXPECT_EQ(MessageOf("siding-question 1\nstart-by-us 7\noption nodes\n"),
            "the question's line 'option nodes': expected the option's name and its value");
  EXPECT_EQ(MessageOf("siding-question 1\nstart-by-us 7\noption mem 1\noption mem 2\n"),
            "the question has the option 'mem' twice");
}

TEST(AnswerText, IsReadByThePlugin) {
  spank::Answer answer;
  std::string text = AnswerText(FromMicros(7));
  ASSERT_TRUE(spank::ParseAnswer(text.data(), text.size(), answer));
  EXPECT_EQ(answer.kind, spank::AnswerKind::kPromised);
  EXPECT_EQ(answer.starts_us, 7);
  text = AnswerText(absl::FailedPreconditionError("not\nbefore noon"));
  ASSERT_TRUE(spank::ParseAnswer(text.data(), text.size(), answer));
  EXPECT_EQ(answer.kind, spank::AnswerKind::kRefused);
  EXPECT_STREQ(answer.reason, "not before noon");
}

TEST(AnswerText, ThatNothingIsKnownYetIsNoRefusal) {
  spank::Answer answer;
  const std::string text = AnswerText(absl::UnavailableError("not heard of"));
  ASSERT_TRUE(spank::ParseAnswer(text.data(), text.size(), answer));
  EXPECT_EQ(answer.kind, spank::AnswerKind::kUndecided);
  EXPECT_STREQ(answer.reason, "not heard of");
}

TEST(ParseQuestion, ADeadlineIsInTheCalendar) {
  EXPECT_EQ(
      MessageOf("siding-question 1\nstart-by-us 9223372036854775807\n"),
      "the question's line 'start-by-us 9223372036854775807': expected a time in microseconds since 1970");
}

}  // namespace
}  // namespace siding::slurm
