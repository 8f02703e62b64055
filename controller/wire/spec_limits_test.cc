#include "controller/wire/spec_limits.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

std::string LimitOf(const v1::JobSpec& spec) { return std::string(CheckLimits(spec).message()); }

TEST(SpecLimits, AnOrdinaryJobIsWithinThem) {
  v1::JobSpec spec;
  spec.set_name("Größe 3, run #7");
  spec.add_command("/bin/sh");
  spec.add_command("echo one\necho two\tthree");
  (*spec.mutable_env())["BASH_FUNC_module%%"] = "() {\n :\n}";
  (*spec.mutable_labels())["qos"] = "low";
  EXPECT_EQ(LimitOf(spec), "");
}

TEST(SpecLimits, ANameIsOneLine) {
  v1::JobSpec spec;
  spec.set_name("good\nroot job 1 done");
  EXPECT_EQ(LimitOf(spec), "name: expected no control characters");
}

TEST(SpecLimits, ANameSpeaksToNoTerminal) {
  v1::JobSpec spec;
  spec.set_name("\x1b]0;owned\x07");
  EXPECT_EQ(LimitOf(spec), "name: expected no control characters");
}

TEST(SpecLimits, ANameIsReadAsItIsWritten) {
  v1::JobSpec spec;
  for (const char* unseen : {"\u202A", "\u202E", "\u2066", "\u2069", "\u200E", "\u200F", "\u061C", "\u200B",
                             "\u200D", "\u2060", "\uFEFF", "\u0085", "\u2028", "\U000E0041"}) {
    spec.set_name(std::string("ab") + unseen + "c");
    EXPECT_THAT(LimitOf(spec), HasSubstr("name: expected only characters that are seen, got U+")) << unseen;
  }
  spec.set_name("ab\u202Ec");
  EXPECT_THAT(LimitOf(spec), HasSubstr("got U+202E at byte 2"));
}

TEST(SpecLimits, SoAreLabelsAndVariables) {
  v1::JobSpec labels, variables;
  (*labels.mutable_labels())["qos"] = "low\u202E";
  EXPECT_THAT(LimitOf(labels), HasSubstr("labels: expected only characters that are seen"));
  (*variables.mutable_env())["A\u200B"] = "x";
  EXPECT_THAT(LimitOf(variables), HasSubstr("env: expected only characters that are seen"));
}

TEST(SpecLimits, NamesOfAnyLanguageMayBe) {
  v1::JobSpec spec;
  for (const char* name : {"Größe", "東京 計算", "שלום", "مرحبا", "🚂", "e\u0301"}) {
    spec.set_name(name);
    EXPECT_EQ(LimitOf(spec), "") << name;
  }
}

// A folder may have any name. It is escaped where it is shown.
TEST(SpecLimits, PathsMayBeWhatTheyAre) {
  v1::JobSpec spec;
  spec.set_workdir("/home/ada/\u200F");
  EXPECT_EQ(LimitOf(spec), "");
}

TEST(SpecLimits, ANameHasALength) {
  v1::JobSpec spec;
  spec.set_name(std::string(257, 'x'));
  EXPECT_EQ(LimitOf(spec), "name: expected at most 256 bytes, got 257");
}

TEST(SpecLimits, PathsAreOneLine) {
  v1::JobSpec spec;
  spec.set_output("/tmp/a\nb");
  EXPECT_EQ(LimitOf(spec), "output: expected no control characters");
}

TEST(SpecLimits, PathsHaveALength) {
  v1::JobSpec spec;
  spec.set_workdir("/" + std::string(5000, 'x'));
  EXPECT_EQ(LimitOf(spec), "workdir: expected at most 4095 bytes, got 5001");
}

TEST(SpecLimits, LabelsAreOneLine) {
  v1::JobSpec spec;
  (*spec.mutable_labels())["qos"] = "low\r";
  EXPECT_EQ(LimitOf(spec), "labels: expected no control characters");
}

TEST(SpecLimits, LabelsAreFew) {
  v1::JobSpec spec;
  for (int i = 0; i < 65; ++i) (*spec.mutable_labels())[std::to_string(i)] = "x";
  EXPECT_EQ(LimitOf(spec), "labels: expected at most 64, got 65");
}

TEST(SpecLimits, AnArgumentIsWholeOnTheNode) {
  v1::JobSpec spec;
  spec.add_command(std::string("/bin/echo\0 hidden", 17));
  EXPECT_EQ(LimitOf(spec), "command: expected no zero bytes");
}

TEST(SpecLimits, AnArgumentIsOneThatTheKernelTakes) {
  v1::JobSpec spec;
  spec.add_command(std::string(131072, 'x'));
  EXPECT_THAT(LimitOf(spec), HasSubstr("command: expected strings of less than 131072 bytes, got 131072"));
}

TEST(SpecLimits, AnEnvironmentIsOneThatTheKernelTakes) {
  v1::JobSpec spec;
  (*spec.mutable_env())["PATH"] = std::string(131072, 'x');
  EXPECT_THAT(LimitOf(spec), HasSubstr("env: PATH: expected strings of less than 131072 bytes"));
}

TEST(SpecLimits, ArgumentsAreNotWithoutNumber) {
  v1::JobSpec spec;
  for (int i = 0; i < 16385; ++i) spec.add_command("x");
  EXPECT_EQ(LimitOf(spec), "command: expected at most 16384 words, got 16385");
}

TEST(SpecLimits, AllOfItTogetherHasASize) {
  v1::JobSpec spec;
  for (int i = 0; i < 9; ++i) (*spec.mutable_env())[std::to_string(i)] = std::string(120000, 'x');
  EXPECT_EQ(LimitOf(spec),
            "command, env, app.restart_command: expected at most 1048576 bytes together, got 1080027");
}

TEST(SpecLimits, TheCommandAfterASaveCountsTowardsTheWhole) {
  v1::JobSpec spec;
  for (int i = 0; i < 5; ++i) spec.add_command(std::string(120000, 'x'));
  for (int i = 0; i < 5; ++i) spec.mutable_app()->add_restart_command(std::string(120000, 'x'));
  EXPECT_THAT(LimitOf(spec), HasSubstr("at most 1048576 bytes together, got 1200010"));
}

TEST(SpecLimits, TheCommandAfterASaveHasThemToo) {
  v1::JobSpec spec;
  spec.mutable_app()->add_restart_command(std::string(131072, 'x'));
  EXPECT_THAT(LimitOf(spec), HasSubstr("app.restart_command: expected strings of less than"));
}

}  // namespace
}  // namespace siding
