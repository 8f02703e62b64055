#include "page/server/byte_stream.h"

#include "gtest/gtest.h"

namespace siding::page {
namespace {

class ByteStreamTest : public testing::Test {
 protected:
  ssize_t Read(size_t most = 100) {
    std::string bytes(most, '\0');
    const ssize_t size = stream_.Read(
        bytes.data(), most, [this] { ++pauses_; }, [this] { ++resumes_; });
    read_ = bytes.substr(0, size > 0 ? static_cast<size_t>(size) : 0);
    return size;
  }

  ByteStream stream_{10};
  int pauses_ = 0, resumes_ = 0;
  std::string read_;
};

TEST_F(ByteStreamTest, GivesWhatWasWritten) {
  stream_.Write("ab");
  stream_.Write("c");
  EXPECT_EQ(Read(), 3);
  EXPECT_EQ(read_, "abc");
  EXPECT_EQ(pauses_, 0);
}
TEST_F(ByteStreamTest, GivesNoMoreThanIsTaken) {
  stream_.Write("abc");
  EXPECT_EQ(Read(2), 2);
  EXPECT_EQ(stream_.Unread(), 1u);
  EXPECT_EQ(Read(2), 1);
  EXPECT_EQ(read_, "c");
}
TEST_F(ByteStreamTest, AReaderThatWaitsIsResumedOnce) {
  EXPECT_EQ(Read(), ByteStream::kNothingYet);
  EXPECT_EQ(pauses_, 1);
  stream_.Write("a");
  stream_.Write("b");
  EXPECT_EQ(resumes_, 1);
}
TEST_F(ByteStreamTest, AReaderThatDoesNotReadIsDropped) {
  EXPECT_TRUE(stream_.Write("0123456789"));
  EXPECT_FALSE(stream_.Write("0"));
  EXPECT_TRUE(stream_.HasEnded());
  EXPECT_EQ(stream_.Unread(), 0u);
  EXPECT_EQ(Read(), ByteStream::kEnd);
}
TEST_F(ByteStreamTest, TheEndResumesAReaderThatWaits) {
  Read();
  stream_.End();
  EXPECT_EQ(resumes_, 1);
  EXPECT_EQ(Read(), ByteStream::kEnd);
  EXPECT_EQ(pauses_, 1);
  EXPECT_FALSE(stream_.Write("a"));
}

}  // namespace
}  // namespace siding::page
