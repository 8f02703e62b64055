#include "agent/pods/messages.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

const StartingContainer kWritten = {"5b5e07db-f1b9-4530-81ef-b7d04d66b83e",
                                    "main",
                                    {"/run/containerd/runc/k8s.io", "438e2ba9", "/run/bundle of it"}};

// Every byte that a name in Linux can have, but the newline.
std::string AllBytes() {
  std::string bytes;
  for (int byte = 1; byte < 256; ++byte) {
    if (byte != '\n') bytes += static_cast<char>(byte);
  }
  return bytes;
}

TEST(StartingMessage, IsReadAsItWasWritten) {
  const auto read = ParseStarting(ToText(kWritten));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->pod_uid, kWritten.pod_uid);
  EXPECT_EQ(read->name, kWritten.name);
  EXPECT_EQ(read->container.root, kWritten.container.root);
  EXPECT_EQ(read->container.id, kWritten.container.id);
  EXPECT_EQ(read->container.bundle, kWritten.container.bundle);
}

TEST(StartingMessage, StrangeBytesAreKept) {
  StartingContainer starting = kWritten;
  starting.container.bundle = AllBytes();
  const auto read = ParseStarting(ToText(starting));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->container.bundle, AllBytes());
}

TEST(StartingMessage, EachLineIsNeededAndNamed) {
  for (const char* key : {"pod", "name", "root", "id", "bundle"}) {
    std::string text = ToText(kWritten);
    const size_t line = text.find(absl::StrCat("\n", key, " ")) + 1;
    text.erase(line, text.find('\n', line) + 1 - line);
    const auto read = ParseStarting(text);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << text;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(absl::StrCat("'", key, "'")));
  }
}

TEST(StartingMessage, ALineWithoutAValueIsNone) {
  StartingContainer starting = kWritten;
  starting.name = "";
  EXPECT_TRUE(absl::IsInvalidArgument(ParseStarting(ToText(starting)).status()));
}

TEST(StartingMessage, AValueCannotSayAnotherLineAgain) {
  StartingContainer starting = kWritten;
  starting.container.bundle = "/bundle\npod somebody-elses";
  const auto read = ParseStarting(ToText(starting));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->pod_uid, kWritten.pod_uid);
}

TEST(StartingMessage, LinesOfALaterProgramAreSkipped) {
  EXPECT_TRUE(ParseStarting(ToText(kWritten) + "colour blue\n").ok());
}

TEST(StartingMessage, NonsenseIsRefused) {
  const std::string whole = ToText(kWritten);
  const std::vector<std::string> all = {"",
                                        "\n",
                                        "hello\n",
                                        std::string(3, '\0'),
                                        "siding-container\n",
                                        "siding-container 1",
                                        whole.substr(0, whole.size() - 1),
                                        ToText(absl::StatusOr<pid_t>(7))};
  for (const std::string& text : all)
    EXPECT_TRUE(absl::IsInvalidArgument(ParseStarting(text).status())) << text;
}

TEST(StartingMessage, AnotherVersionIsToldApart) {
  EXPECT_TRUE(absl::IsUnimplemented(ParseStarting("siding-container 2\n").status()));
  EXPECT_TRUE(absl::IsUnimplemented(ParseStart("siding-start 2\n").status()));
  EXPECT_TRUE(absl::IsUnimplemented(ParseMade("siding-made 2\n").status()));
}

TEST(StartMessage, FromAnImage) {
  const auto read = ParseStart(ToText(absl::StatusOr<ContainerStart>(ContainerStart{"/images/a b"})));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->image_folder, "/images/a b");
}

TEST(StartMessage, FromTheBeginning) {
  const auto read = ParseStart(ToText(absl::StatusOr<ContainerStart>(ContainerStart{})));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->image_folder, "");
}

TEST(StartMessage, ARefusalHasItsReasonOnOneLine) {
  const auto read = ParseStart(ToText(absl::StatusOr<ContainerStart>(absl::UnavailableError("not\nyet"))));
  EXPECT_EQ(read.status(), absl::FailedPreconditionError("not yet"));
}

TEST(StartMessage, WhateverTheReasonIsItIsNoStart) {
  for (const std::string& reason : {std::string(), AllBytes(), std::string(1 << 20, 'x'),
                                    std::string("why\nimage /an/image\nfrom beginning")}) {
    const std::string text = ToText(absl::StatusOr<ContainerStart>(absl::InternalError(reason)));
    EXPECT_LE(text.size(), kMostPodsMessage);
    EXPECT_TRUE(absl::IsFailedPrecondition(ParseStart(text).status())) << text;
  }
}

TEST(StartMessage, NonsenseIsRefused) {
  for (const char* text : {"", "siding-start 1\n", "siding-start 1\nimage /x", "siding-made 1\npid 1\n"})
    EXPECT_TRUE(absl::IsInvalidArgument(ParseStart(text).status())) << text;
}

// It would be a start from the beginning.
TEST(StartMessage, AnImageWithoutAFolderIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(ParseStart("siding-start 1\nimage \n").status()));
}

TEST(MadeMessage, HasTheFirstProcess) {
  EXPECT_EQ(ParseMade(ToText(absl::StatusOr<pid_t>(4711))).value_or(0), 4711);
}

TEST(MadeMessage, OrWhyThereIsNone) {
  EXPECT_EQ(ParseMade(ToText(absl::StatusOr<pid_t>(absl::InternalError("criu:\nno memory")))).status(),
            absl::AbortedError("criu: no memory"));
}

TEST(MadeMessage, WhateverTheReasonIsThereIsNoProcess) {
  for (const std::string& reason :
       {std::string(), AllBytes(), std::string(1 << 20, 'x'), std::string("why\npid 1")}) {
    const std::string text = ToText(absl::StatusOr<pid_t>(absl::InternalError(reason)));
    EXPECT_LE(text.size(), kMostPodsMessage);
    EXPECT_TRUE(absl::IsAborted(ParseMade(text).status())) << text;
  }
}

TEST(MadeMessage, WhatIsNoProcessIsRefused) {
  for (const char* pid : {"0", "-1", "x", "", "1x", "4294967297"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseMade(absl::StrCat("siding-made 1\npid ", pid, "\n")).status()))
        << pid;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ParseMade("siding-made 1\n").status()));
}

}  // namespace
}  // namespace siding
