#include "examples/heat/file_exchange.h"

#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "examples/heat/fnv.h"

namespace heat {
namespace {

constexpr int kPollsBeforeRepeating = 500;  // at 1 ms

void ShortPause() {
  const timespec pause = {0, 1'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace

void WriteWhole(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".tmp";
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + temporary);
  std::filesystem::rename(temporary, path);
}

FileExchange::FileExchange(std::string folder, std::string job, int rank)
    : folder_(std::move(folder)), job_(std::move(job)), rank_(rank) {
  std::filesystem::create_directories(folder_);
}

Halo FileExchange::Swap(int64_t number, const Halo& own) {
  if (!own.above.empty()) Publish("up", number, own.above);
  if (!own.below.empty()) Publish("down", number, own.below);
  Halo theirs;
  if (!own.above.empty()) theirs.above = Await(rank_ - 1, "down", number, own.above.size());
  if (!own.below.empty()) theirs.below = Await(rank_ + 1, "up", number, own.below.size());
  Forget(number);
  return theirs;
}

void FileExchange::GiveBlock(const std::vector<double>& block) { Publish("block", 0, block); }

std::vector<double> FileExchange::TakeBlock(int from, size_t count) { return Await(from, "block", 0, count); }

std::string FileExchange::Path(int rank, const std::string& what, int64_t number) const {
  std::ostringstream path;
  path << folder_ << "/" << job_ << "." << rank << "." << what << "." << number;
  return path.str();
}

void FileExchange::Publish(const std::string& what, int64_t number, const std::vector<double>& values) {
  const std::string path = Path(rank_, what, number);
  const size_t bytes = values.size() * sizeof(double);
  const uint64_t hash = Fnv1a(values.data(), bytes);
  std::string content(sizeof hash + bytes, '\0');
  std::memcpy(content.data(), &hash, sizeof hash);
  std::memcpy(content.data() + sizeof hash, values.data(), bytes);
  WriteWhole(path, content);
  published_.emplace_back(path, values);
  if (published_.size() > 2 * kKept) published_.pop_front();
}

void FileExchange::PublishMissing() {
  const auto published = std::move(published_);
  published_.clear();
  for (const auto& [path, values] : published) {
    if (std::filesystem::exists(path)) {
      published_.emplace_back(path, values);
      continue;
    }
    const size_t dot = path.rfind('.'), before = path.rfind('.', dot - 1);
    Publish(path.substr(before + 1, dot - before - 1), std::stoll(path.substr(dot + 1)), values);
  }
}

std::vector<double> FileExchange::Await(int from, const std::string& what, int64_t number, size_t count) {
  const std::string path = Path(from, what, number);
  std::ifstream file;
  for (int polls = 1;; ++polls) {
    file.open(path, std::ios::binary);
    if (file.is_open()) break;
    file.clear();
    if (polls % kPollsBeforeRepeating == 0) PublishMissing();
    ShortPause();
  }
  uint64_t hash = 0;
  std::vector<double> values(count);
  const auto bytes = static_cast<std::streamsize>(count * sizeof(double));
  file.read(reinterpret_cast<char*>(&hash), sizeof hash);
  file.read(reinterpret_cast<char*>(values.data()), bytes);
  if (!file || file.peek() != std::ifstream::traits_type::eof() ||
      hash != Fnv1a(values.data(), static_cast<size_t>(bytes))) {
    throw std::runtime_error(path + " is not of this run: use an empty --exchange folder");
  }
  return values;
}

void FileExchange::Forget(int64_t number) {
  for (const char* what : {"up", "down"}) unlink(Path(rank_, what, number - kKept).c_str());
}

}  // namespace heat
