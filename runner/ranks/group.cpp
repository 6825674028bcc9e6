#include "ranks/group.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <future>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <torch/torch.h>

#include "error.hpp"
#include "ranks/gloo_backend.hpp"
#include "ranks/gloo_threads.hpp"
#include "ranks/lost_note.hpp"
#include "ranks/sockets.hpp"

namespace headroom {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds time_to_meet(300), time_to_break_off(3);
constexpr int gloo_attempts = 5;  // to connect to each peer
// A connection of Gloo may break some time before the watch knows whose end it was.
constexpr milliseconds time_to_name = time_to_lose_peer + milliseconds(500);
constexpr milliseconds time_to_fail(300), one_look(100);
// Where the network is gone all others end within five seconds: they are told of it, and either wait or compute. The
// rest is for the end of the process.
static_assert(time_to_lose_peer + std::max(time_to_fail, RankWatch::usual_patience) + milliseconds(500) < seconds(5));
static_assert(time_to_name + milliseconds(500) < seconds(5));
// One may prepare data for hours while the others wait. Who has ended is the watch's to tell.
constexpr std::chrono::hours time_to_answer(24 * 30);

// A collective that was given up may still write: it holds what it writes to.
template <class Value>
at::Tensor tensor_over(const std::shared_ptr<std::vector<Value>>& values, at::ScalarType type) {
  return torch::from_blob(
      values->data(), {std::ssize(*values)}, [values](void*) {}, type);
}

// This process ends with its threads, before anything is destroyed that they use.
void end_without_destructors() {
  on_exit(
      [](int status, void*) {
        std::fflush(nullptr);
        std::_Exit(status);
      },
      nullptr);
}

// open_backend() in a thread of its own, since nothing else ends its wait for a rank that has ended. The thread of one
// that was given up ends when its time is over.
c10::intrusive_ptr<c10d::Backend> open_backend_unless(const std::function<bool()>& in_vain, const Ranks& ranks,
                                                      const c10::intrusive_ptr<c10d::Store>& store, milliseconds time) {
  std::packaged_task<c10::intrusive_ptr<c10d::Backend>()> open(
      [ranks, store, time] { return open_backend(ranks, store, time); });
  auto opened = open.get_future();
  std::thread(std::move(open)).detach();
  while (opened.wait_for(one_look) != std::future_status::ready) {
    if (!in_vain()) continue;
    end_without_destructors();
    throw std::runtime_error("another rank has ended");
  }
  return opened.get();
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

class RankGroup::Sum {
 public:
  c10::intrusive_ptr<c10d::Work> work;
  std::shared_ptr<Completion> completion;
};

namespace {

// Of their own, so that the number of one that was closed meanwhile is never another file's.
std::vector<Descriptor> copies_of(const std::vector<int>& connections) {
  std::vector<Descriptor> copies;
  for (const int connection : connections) {
    Descriptor copy(fcntl(connection, F_DUPFD_CLOEXEC, 0));
    if (copy) copies.push_back(std::move(copy));
  }
  return copies;
}

}  // namespace

void RankGroup::meet() {
  const auto in_vain = [this] { return meets_in_vain(); };
  auto store = open_store(ranks_, time_to_meet);
  const std::vector<int> others = open_connections();
  auto gloo = outlives_losses_ ? open_backend_unless(in_vain, ranks_, store, milliseconds(time_to_meet) / gloo_attempts)
                               : open_backend(ranks_, store, time_to_answer);
  if (outlives_losses_) gloo->setTimeout(time_to_meet);
  backend_ = std::make_unique<Backend>(std::move(store), std::move(gloo));
  const auto made = [&others] {
    std::vector<int> connections = open_connections();
    std::erase_if(connections, [&](int connection) { return std::ranges::find(others, connection) != others.end(); });
    return connections;
  };
  std::vector<int> connections;
  if (ranks_.elastic) lines_ = copies_of(connections = made());
  hosts_ = gather(host_name());
  if (!ranks_.elastic) connections = made();
  watch_ = std::make_unique<RankWatch>(
      ranks_, [this](const std::string& text) { return from_first(text); },
      [this](int lost) { return end_overdue(lost); }, std::move(connections), RankWatch::usual_patience, in_vain);
  if (outlives_losses_) backend_->gloo->setTimeout(time_to_answer);
}

RankGroup::RankGroup(const Ranks& ranks) : ranks_(ranks) {
  if (ranks_.comes_back) return;
  try {
    meet();
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

void RankGroup::leave() {
  if (watch_ != nullptr) watch_->leave();  // there is none where the others were lost
}

void RankGroup::keep_lost_note_at(const std::filesystem::path& file) {
  forget_lost_note(file);
  const MutexLock lock(note_mutex_);
  lost_note_ = file;
}

bool RankGroup::stands_in() const {
  return ranks_.rank == 1 && (lost_ == 0 || (watch_ != nullptr && watch_->lost() == 0));
}

int RankGroup::launched_rank_of(int rank) const {
  return numbers_.empty() ? rank : numbers_[static_cast<size_t>(rank)];
}

std::string RankGroup::name_of(int rank) const {
  Ranks other = ranks_;
  other.rank = rank;
  other.launched_rank = launched_rank_of(rank);
  return other.name() + " on host " + host_of(rank);
}

namespace {

const char* const how_to_go_on = ": resume the run from its last checkpoint, on as many processes as you like";

// The end of a backend waits for its collectives, and these for who is lost.
void leave_running(c10::intrusive_ptr<c10d::Backend> gloo) {
  (void)gloo.release();
  end_without_destructors();
}

}  // namespace

void RankGroup::give_up(const std::string& problem) {
  std::optional<int> lost;
  if (watch_ != nullptr) lost_ = lost = watch_->lost_within(time_to_name);
  const std::string sentence =
      (lost ? name_of(*lost) + " has ended, or cannot be reached"
            : "the connection between the ranks broke (" + problem.substr(0, problem.find('\n')) + ")") +
      how_to_go_on;
  end_group(sentence);
}

void RankGroup::end_group(const std::string& sentence) {
  if (watch_ != nullptr) {
    watch_->acknowledge();
    watch_->forget_connections();
  }
  break_off();
  // Where a sum still writes to the gradients, the next one cannot begin.
  if (!outlives_losses_ || backend_ == nullptr) throw Error(Exit::resumable, "ranks", sentence);
  problem_ = sentence;
  throw RankLost(sentence);
}

void RankGroup::make_way() {
  end_group(std::string("a rank came back, and the others did not meet it") + how_to_go_on);
}

// A member has ended, or another one came, since this group was told.
bool RankGroup::meets_in_vain() const { return group_ > 0 && watch_ == nullptr && is_followed(); }

bool RankGroup::is_followed() const { return roster().read().group > group_; }

std::vector<int> RankGroup::members() const {
  if (!numbers_.empty()) return numbers_;
  std::vector<int> all;
  for (int rank = 0; rank < ranks_.launched_count; ++rank) all.push_back(rank);
  return all;
}

// Where losses are outlived, all that is under way comes to an end, here and on the ranks at the other ends.
void RankGroup::break_off() {
  for (const Descriptor& line : lines_) shutdown(line.get(), SHUT_RDWR);
  lines_.clear();
  if (backend_ == nullptr || backend_->gloo == nullptr) return;
  const SumState state = last_sum();
  if (state == SumState::ended) {
    // Closes the connections: who waits for this rank goes on.
    backend_->gloo.reset();
    return;
  }
  leave_running(std::move(backend_->gloo));
  if (outlives_losses_ && state == SumState::running) backend_ = nullptr;
}

// Its connections are shut down. Where losses end the run anyway, it is not waited for.
RankGroup::SumState RankGroup::last_sum() const {
  if (last_begun_ == nullptr || last_begun_->completion->wait_for(milliseconds(0))) return SumState::ended;
  for (milliseconds left = time_to_break_off; outlives_losses_ && left > milliseconds(0); left -= one_look) {
    if (last_begun_->completion->wait_for(one_look)) return SumState::ended;
    if (gloo_has_nothing_to_do(one_look)) return SumState::asleep;
  }
  return SumState::running;
}

// All groups' stores lie in the launcher's folder.
Roster RankGroup::roster() const { return Roster(std::filesystem::path(ranks_.store_file).parent_path()); }

void RankGroup::outlive_losses() {
  if (!ranks_.elastic) return;
  roster().sign_in(ranks_.launched_rank);
  outlives_losses_ = true;
}

void RankGroup::rejoin(const std::function<bool()>& stopped) {
  const Roster roster = this->roster();
  if (ranks_.comes_back) {
    problem_ = ranks_.name() + " was started again, and the run did not go on with it";
    const auto before = group_before_return(roster, ranks_.launched_rank, stopped);
    if (!before) throw Error(Exit::resumable, "ranks", problem_);
    group_ = *before;
  }
  const std::string problem = problem_;  // who was lost; what breaks in between may not know
  for (;;) {
    watch_.reset();
    last_begun_.reset();
    const auto next = next_group(roster, group_, ranks_.launched_rank, stopped);
    if (!next) throw Error(Exit::resumable, "ranks", problem);
    lost_.reset();
    group_ = next->group;
    numbers_ = next->ranks;
    ranks_.rank = ranks_.local_rank =
        static_cast<int>(std::ranges::find(numbers_, ranks_.launched_rank) - numbers_.begin());
    ranks_.count = ranks_.local_count = static_cast<int>(numbers_.size());
    ranks_.store_file = roster.store_of(group_).string();
    try {
      meet();
      ranks_.comes_back = false;
      return;
    } catch (const std::exception&) {  // another one is lost
      break_off();
      if (backend_ == nullptr && !ranks_.comes_back) throw Error(Exit::resumable, "ranks", problem);
    }
  }
}

void RankGroup::went_on(int64_t step) const {
  if (is_first()) roster().go_on(group_, step);
}

bool RankGroup::end_overdue(int lost) const {
  // Who computes is waited for, unless the run does not go on.
  if (outlives_losses_ && !roster().read().ended) return false;
  const std::string sentence = "[ranks] " + name_of(lost) + " has ended, or cannot be reached, and " + ranks_.name() +
                               " ends in the middle of its window" + how_to_go_on;
  std::fprintf(stderr, "%s\n", sentence.c_str());
  {
    const MutexLock lock(note_mutex_);
    if (!lost_note_.empty()) write_lost_note(lost_note_, sentence);
  }
  std::_Exit(static_cast<int>(Exit::resumable));
}

std::shared_ptr<RankGroup::Sum> RankGroup::begin_to_add_up(at::Tensor tensor) {
  if (backend_ == nullptr || backend_->gloo == nullptr || has_lost()) give_up("it was given up before");
  try {
    std::vector<at::Tensor> tensors = {std::move(tensor)};
    auto begun = std::make_shared<Sum>();
    begun->completion = std::make_shared<Completion>();
    begun->work = backend_->gloo->allreduce(tensors);
    begun->work->getFuture()->addCallback(
        [completion = begun->completion](c10::ivalue::Future&) { completion->complete(); });
    last_begun_ = begun;
    return begun;
  } catch (const std::exception& problem) {
    give_up(problem.what());
  }
}

void RankGroup::end(Sum& sum) {
  bool ended = false;
  // The ends of the others' connections mostly end it, too.
  for (auto left = time_to_fail; !ended && left > milliseconds(0);
       left -= has_lost() || meets_in_vain() ? one_look : milliseconds(0))
    ended = sum.completion->wait_for(one_look);
  std::string problem;
  if (ended) {
    try {
      // It holds a connection, which is to close with the others.
      const c10::intrusive_ptr<c10d::Work> work = std::move(sum.work);
      work->wait();  // throws what it ended with
      return;
    } catch (const std::exception& caught) {
      problem = caught.what();
    }
  }
  give_up(problem);
}

void RankGroup::add_up(at::Tensor tensor) { end(*begin_to_add_up(std::move(tensor))); }

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
  // Added up, each to the zeros of the others: Gloo's allgather takes a tensor's memory, which may be refused.
  const auto texts = std::make_shared<std::vector<char>>(count * longest);
  std::ranges::copy(bytes, texts->data() + rank * longest);
  add_up(tensor_over(texts, at::kByte));
  for (size_t i = 0; i < count; ++i) all[i].assign(texts->data() + i * longest, static_cast<size_t>((*sizes)[i]));
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
