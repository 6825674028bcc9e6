#include "ranks/group.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>

#include "error.hpp"
#include "ranks/lost_note.hpp"
#include "ranks/sockets.hpp"

namespace headroom {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds time_to_meet(300), time_to_name(5);
constexpr milliseconds time_to_fail(2000), one_look(100);
// One may prepare data for hours while the others wait. Who has ended is the watch's to tell.
constexpr std::chrono::hours time_to_answer(24 * 30);

c10::intrusive_ptr<c10d::Store> open_store(const Ranks& ranks) {
  c10::intrusive_ptr<c10d::Store> store;
  if (!ranks.store_file.empty()) {
    store = c10::make_intrusive<c10d::FileStore>(ranks.store_file, ranks.count);
  } else {
    c10d::TCPStoreOptions options;
    options.port = ranks.port;
    options.isServer = ranks.is_first() && !ranks.hosted_by_launcher;
    options.waitWorkers = false;
    options.timeout = time_to_meet;
    store = c10::make_intrusive<c10d::TCPStore>(ranks.host, options);
  }
  store->setTimeout(time_to_meet);
  return c10::make_intrusive<c10d::PrefixStore>("headroom/" + ranks.attempt, store);
}

std::shared_ptr<gloo::transport::Device> open_device(const Ranks& ranks) {
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"))
    return c10d::ProcessGroupGloo::createDeviceForInterface(interface);
  if (ranks.local_count == ranks.count) return c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  const std::string address = address_towards(ranks.host, ranks.port);
  if (address.starts_with("127."))
    throw std::runtime_error(ranks.host +
                             " is a loopback address here: set GLOO_SOCKET_IFNAME to the interface that "
                             "leads to the other machines, or MASTER_ADDR to an address of it");
  return c10d::ProcessGroupGloo::createDeviceForHostname(address);
}

c10::intrusive_ptr<c10d::Backend> open_backend(const Ranks& ranks, const c10::intrusive_ptr<c10d::Store>& store) {
  auto options = c10d::ProcessGroupGloo::Options::create(time_to_answer);
  options->devices.push_back(open_device(ranks));
  options->threads = 1;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, ranks.rank, ranks.count, options);
}

// A collective that was given up may still write: it holds what it writes to.
template <class Value>
at::Tensor tensor_over(const std::shared_ptr<std::vector<Value>>& values, at::ScalarType type) {
  return torch::from_blob(
      values->data(), {std::ssize(*values)}, [values](void*) {}, type);
}

// The end of a collective, of which c10d's thread tells.
class Completion {
 public:
  void complete() {
    const MutexLock lock(mutex_);
    completed_ = true;
    changed_.notify_all();
  }
  bool wait_for(milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    const MutexLock lock(mutex_);
    while (!completed_ && changed_.wait_until(mutex_, until)) {
    }
    return completed_;
  }

 private:
  Mutex mutex_;
  Condition changed_;
  bool completed_ GUARDED_BY(mutex_) = false;
};

}  // namespace

struct RankGroup::Backend {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::Backend> gloo;
};

RankGroup::RankGroup(const Ranks& ranks) : ranks_(ranks) {
  try {
    auto store = open_store(ranks);
    auto gloo = open_backend(ranks, store);
    backend_ = std::make_unique<Backend>(std::move(store), std::move(gloo));
    hosts_ = gather(host_name());
    watch_ = std::make_unique<RankWatch>(
        ranks, [this](const std::string& text) { return from_first(text); }, [this](int lost) { end_overdue(lost); });
  } catch (const std::exception& problem) {
    const std::string what = problem.what();
    throw Error(Exit::bad_input, "ranks",
                ranks.name() + " (" + ranks.launcher + ", host " + host_name() + ") has not met the others" +
                    (ranks.store_file.empty() ? " at " + ranks.host + ":" + std::to_string(ranks.port) : "") +
                    ": see that all were started, and that this address can be reached (" +
                    what.substr(0, what.find('\n')) + ")");
  }
}

RankGroup::~RankGroup() = default;

void RankGroup::leave() { watch_->leave(); }

void RankGroup::keep_lost_note_at(const std::filesystem::path& file) {
  forget_lost_note(file);
  const MutexLock lock(note_mutex_);
  lost_note_ = file;
}

bool RankGroup::stands_in() const { return ranks_.rank == 1 && watch_->lost() == 0; }

std::string RankGroup::name_of(int rank) const {
  Ranks other = ranks_;
  other.rank = rank;
  return other.name() + " on host " + host_of(rank);
}

namespace {

const char* const how_to_go_on = ": resume the run from its last checkpoint, on as many processes as you like";

// The end of a backend waits for its collectives, and these for who is lost. This process ends with its threads, before
// anything is destroyed that they use.
void leave_running(c10::intrusive_ptr<c10d::Backend> gloo) {
  (void)gloo.release();
  on_exit(
      [](int status, void*) {
        std::fflush(nullptr);
        std::_Exit(status);
      },
      nullptr);
}

}  // namespace

// `under_way`: a collective that has not ended yet.
void RankGroup::give_up(const std::string& problem, bool under_way) {
  std::optional<int> lost;
  if (watch_ != nullptr) {
    lost = watch_->lost_within(time_to_name);
    watch_->acknowledge();
  }
  if (under_way) {
    leave_running(std::move(backend_->gloo));
  } else {
    // Closes the connections: who waits for this rank goes on.
    backend_->gloo.reset();
  }
  throw Error(Exit::resumable, "ranks",
              (lost ? name_of(*lost) + " has ended, or cannot be reached"
                    : "the connection between the ranks broke (" + problem.substr(0, problem.find('\n')) + ")") +
                  how_to_go_on);
}

void RankGroup::end_overdue(int lost) const {
  const std::string sentence = "[ranks] " + name_of(lost) + " has ended, or cannot be reached, and " + ranks_.name() +
                               " ends in the middle of its window" + how_to_go_on;
  std::fprintf(stderr, "%s\n", sentence.c_str());
  {
    const MutexLock lock(note_mutex_);
    if (!lost_note_.empty()) write_lost_note(lost_note_, sentence);
  }
  std::_Exit(static_cast<int>(Exit::resumable));
}

template <class Start>
void RankGroup::run(Start&& start) {
  const auto is_lost = [this] { return watch_ != nullptr && watch_->lost(); };
  if (backend_->gloo == nullptr || is_lost()) give_up("it was given up before", /*under_way=*/false);
  const auto completion = std::make_shared<Completion>();
  std::string problem;
  try {
    const c10::intrusive_ptr<c10d::Work> work = start(*backend_->gloo);
    work->getFuture()->addCallback([completion](c10::ivalue::Future&) { completion->complete(); });
    bool ended = false;
    // The ends of the others' connections mostly end it, too.
    for (auto left = time_to_fail; !ended && left > milliseconds(0); left -= is_lost() ? one_look : milliseconds(0))
      ended = completion->wait_for(one_look);
    if (!ended) give_up("", /*under_way=*/true);
    work->wait();  // throws what it ended with
    return;
  } catch (const Error&) {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& caught) {
    problem = caught.what();
  }
  give_up(problem, /*under_way=*/false);
}

void RankGroup::add_up(at::Tensor tensor) {
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  run([&](c10d::Backend& gloo) { return gloo.allreduce(tensors); });
}

void RankGroup::add_up(std::span<double> numbers) {
  const auto sums = std::make_shared<std::vector<double>>(numbers.begin(), numbers.end());
  add_up(tensor_over(sums, at::kDouble));
  std::ranges::copy(*sums, numbers.begin());
}

std::vector<std::string> RankGroup::gather(std::string_view bytes) {
  const auto count = static_cast<size_t>(ranks_.count), rank = static_cast<size_t>(ranks_.rank);
  const auto sizes = std::make_shared<std::vector<int64_t>>(count, 0);
  (*sizes)[rank] = static_cast<int64_t>(bytes.size());
  add_up(tensor_over(sizes, at::kLong));
  const auto longest = static_cast<size_t>(*std::ranges::max_element(*sizes));
  std::vector<std::string> all(count);
  if (longest == 0) return all;
  // Of one length for all, as the collective wants it.
  std::vector<std::shared_ptr<std::vector<char>>> texts;
  std::vector<std::vector<at::Tensor>> outputs(1);
  for (size_t i = 0; i < count; ++i) {
    texts.push_back(std::make_shared<std::vector<char>>(longest));
    outputs[0].push_back(tensor_over(texts[i], at::kByte));
  }
  const auto own = std::make_shared<std::vector<char>>(bytes.begin(), bytes.end());
  own->resize(longest);
  std::vector<at::Tensor> inputs = {tensor_over(own, at::kByte)};
  run([&](c10d::Backend& gloo) { return gloo.allgather(outputs, inputs); });
  for (size_t i = 0; i < count; ++i) all[i].assign(texts[i]->data(), static_cast<size_t>((*sizes)[i]));
  return all;
}

std::string RankGroup::from_first(std::string_view bytes) { return gather(is_first() ? bytes : "").front(); }

bool RankGroup::on_all(bool holds) {
  double not_held = holds ? 0 : 1;
  add_up({&not_held, 1});
  return not_held == 0;
}

void RankGroup::wait_for_all() { (void)on_all(true); }

std::shared_ptr<RankGroup> join_group(const Ranks& ranks) {
  return ranks.alone() ? nullptr : std::make_shared<RankGroup>(ranks);
}

}  // namespace headroom
