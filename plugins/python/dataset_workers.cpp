#include "dataset_workers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <limits>

namespace headroom::python {

namespace {

using sdk::Error;
using Clock = std::chrono::steady_clock;

constexpr double kLeastStart_s = 300;            // to import what a file imports, from a slow disk
constexpr std::chrono::seconds kIdleFor(60);     // then a worker ends: fewer suffice
constexpr std::chrono::milliseconds kLook(100);  // between looks whether a read that waits was cancelled
constexpr uint64_t kAlignment = 64;

uint64_t number_of(const std::string& text) {
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// As a JSON list of strings.
std::string json_list(const std::vector<std::string>& texts) {
  std::string json = "[";
  for (const std::string& text : texts) {
    json += json.size() > 1 ? ", \"" : "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') json += '\\';
      json += c;
    }
    json += '"';
  }
  return json + "]";
}

struct NamedType {
  const char* name;
  DLDataType dtype;
};

constexpr NamedType kTypes[] = {{"bool", sdk::boolean},
                                {"float16", sdk::f16},
                                {"float32", sdk::f32},
                                {"float64", sdk::f64},
                                {"int8", sdk::i8},
                                {"int16", sdk::i16},
                                {"int32", sdk::i32},
                                {"int64", sdk::i64},
                                {"uint8", sdk::u8},
                                {"uint16", sdk::u16},
                                {"uint32", sdk::u32},
                                {"uint64", sdk::u64},
                                {"bfloat16", {kDLBfloat, 16, 1}}};

sdk::Field field_of(const std::string& name, const std::string& dtype, const std::string& shape) {
  sdk::Field field{.name = name};
  const auto* type = std::ranges::find_if(kTypes, [&](const NamedType& known) { return dtype == known.name; });
  if (type == std::end(kTypes)) throw Error(HR_INTERNAL, "a worker process tells of the unknown type " + dtype);
  field.dtype = type->dtype;
  for (size_t begin = 0; begin < shape.size();) {
    const size_t end = std::min(shape.find(',', begin), shape.size());
    field.shape.push_back(static_cast<int64_t>(number_of(shape.substr(begin, end - begin))));
    begin = end + 1;
  }
  if (field.shape.size() > HR_MAX_DIMS)
    sdk::invalid("field '" + name + "' of the dataset has " + std::to_string(field.shape.size()) +
                 " axes; at most 8 are allowed: reshape it in __getitem__");
  return field;
}

uint64_t bytes_of(const sdk::Field& field) { return static_cast<uint64_t>(field.elements()) * field.dtype.bits / 8u; }

// "r" and three numbers, as dataset_worker.py unpacks them: of 64 bits, little endian.
std::string question_of(const SampleAddress& sample, uint64_t seed) {
  const std::array<uint64_t, 3> numbers = {sample.split, sample.index, seed};
  std::string question(1 + sizeof numbers, 'r');
  std::memcpy(question.data() + 1, numbers.data(), sizeof numbers);
  return question;
}

}  // namespace

DatasetWorkers::DatasetWorkers(const sdk::Host& host, DatasetSettings settings)
    : host_(host),
      settings_(std::move(settings)),
      most_(host.readers_at_once().value_or(std::numeric_limits<uint64_t>::max())) {
  give_back(take());
}

void DatasetWorkers::End::operator()(WorkerProcess* worker) const {
  delete worker;
  workers->leave();
}

void DatasetWorkers::leave() {
  {
    const std::scoped_lock lock(mutex_);
    --existing_;
  }
  changed_.notify_all();
}

// Loads the dataset, in the place of one that `existing_` counts. The first one tells what samples look like; the
// others are told.
DatasetWorkers::Worker DatasetWorkers::start() {
  Worker worker(nullptr, End{this});
  try {
    worker.reset(new WorkerProcess(starter_, settings_.program, settings_.file));
  } catch (...) {
    leave();
    throw;
  }
  std::vector<std::string> question = {"load", settings_.file.string(), settings_.class_name,
                                       json_list(settings_.names)};
  question.insert(question.end(), settings_.split_args.begin(), settings_.split_args.end());
  const std::vector<std::string> loaded = ask_at_start(*worker, question);
  if (fields_.empty()) survey(*worker, loaded);
  for (size_t split = 0; split < lengths_.size(); ++split) {
    if (number_of(loaded.at(split)) != lengths_[split])
      throw Error(HR_IO, "the dataset has " + loaded[split] + " samples in another worker process and had " +
                             std::to_string(lengths_[split]) +
                             " before: its len() must not depend on time, chance or the process");
  }
  lay_out(*worker);
  return worker;
}

std::vector<std::string> DatasetWorkers::ask_at_start(WorkerProcess& worker, const std::vector<std::string>& question) {
  try {
    return worker.ask(joined(question), std::max(kLeastStart_s, settings_.most_read_s), host_);
  } catch (const WorkerEnded& end) {
    const std::string what = "the Python of " + settings_.program.string() + " " + end.how + " before it had loaded " +
                             settings_.file.string();
    if (end.killed) throw Error(HR_OUT_OF_MEMORY, what);
    sdk::invalid(what + ": what it wrote above says why");
  } catch (const WorkerRefused& refused) {
    if (!refused.traceback.empty()) host_.warn(refused.traceback);
    if (refused.kind == "memory") throw Error(HR_OUT_OF_MEMORY, refused.sentence);
    sdk::invalid(refused.sentence);
  }
}

void DatasetWorkers::survey(WorkerProcess& worker, const std::vector<std::string>& loaded) {
  const size_t splits = settings_.split_args.size();
  for (size_t split = 0; split < splits; ++split) lengths_.push_back(number_of(loaded.at(split)));
  for (size_t i = splits; i < loaded.size(); ++i) imported_.emplace_back(loaded[i]);
  std::vector<std::string> described = ask_at_start(worker, {"describe"});
  if (!described.at(0).empty()) host_.warn(described[0]);
  rows_.assign(described.begin() + 1, described.end());
  for (size_t row = 0; row + 2 < rows_.size(); row += 3) {
    fields_.push_back(field_of(rows_[row], rows_[row + 1], rows_[row + 2]));
    offsets_.push_back(memory_bytes_);
    memory_bytes_ += (bytes_of(fields_.back()) + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (memory_bytes_ == 0) sdk::invalid("sample 0 of the dataset is empty: __getitem__ gives at least one array");
}

void DatasetWorkers::lay_out(WorkerProcess& worker) {
  worker.make_memory(memory_bytes_);
  std::vector<std::string> question = {"map", std::to_string(memory_bytes_)};
  for (size_t field = 0; field < fields_.size(); ++field) {
    for (size_t part = 0; part < 3; ++part) question.push_back(rows_[3 * field + part]);
    question.push_back(std::to_string(offsets_[field]));
  }
  ask_at_start(worker, question);
}

// Of those that wait, the one that came first goes first: training's readers ask again at once, and an evaluation's
// would wait until they have read all that they may read ahead.
class DatasetWorkers::Turn {
 public:
  // Under the mutex of the line, also when it ends.
  explicit Turn(std::list<const Turn*>& line) : line_(line), place_(line.insert(line.end(), this)) {}
  ~Turn() { line_.erase(place_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool is_first() const { return line_.front() == this; }

 private:
  std::list<const Turn*>& line_;
  std::list<const Turn*>::iterator place_;
};

// Waits where all that may exist are borrowed.
DatasetWorkers::Worker DatasetWorkers::take() {
  for (;;) {
    Worker worker;
    {
      std::unique_lock lock(mutex_);
      const Turn turn(line_);
      while (!turn.is_first() || (idle_.empty() && existing_ >= most_)) {
        changed_.wait_for(lock, kLook);
        host_.throw_if_cancelled();
      }
      if (idle_.empty()) {
        ++existing_;
      } else {
        worker = std::move(idle_.back().worker);
        idle_.pop_back();
      }
    }
    changed_.notify_all();  // there may be one for the next in the line too
    if (!worker) return start();
    if (!worker->has_ended()) return worker;  // one that ended while it was idle is no sample's fault
  }
}

void DatasetWorkers::give_back(Worker worker) {
  Idle idle{std::move(worker), Clock::now()};
  Worker unused;
  {
    const std::scoped_lock lock(mutex_);
    idle_.reserve(idle_.size() + 1);  // before `idle` is moved: a worker must not end under the mutex
    idle_.push_back(std::move(idle));
    if (idle_.back().since - idle_.front().since >= kIdleFor) {
      unused = std::move(idle_.front().worker);
      idle_.erase(idle_.begin());
    }
  }
  changed_.notify_all();
}

// Its place is kept for the new one.
DatasetWorkers::Worker DatasetWorkers::replaced(Worker worker) {
  delete worker.release();
  return start();
}

void DatasetWorkers::read(const sdk::ReadRequest& request, uint64_t i, uint64_t seed) {
  const SampleAddress sample{request.split(), request.index(i)};
  require_alive(sample);
  const std::string question = question_of(sample, seed);
  Worker worker = take();
  for (bool again = false;; again = true) {
    try {
      worker->ask(question, settings_.most_read_s, host_);
    } catch (const WorkerEnded& end) {
      if (again) refuse_deadly(sample, end);
      host_.warn("the worker process that read " + name_of(sample) + " " + end.how + "; another one reads it again");
      worker = replaced(std::move(worker));
      continue;
    } catch (const WorkerRefused& refused) {
      give_back(std::move(worker));
      refuse(sample, refused);
    }
    copy_to_slots(*worker, request, i);
    give_back(std::move(worker));
    return;
  }
}

void DatasetWorkers::copy_to_slots(const WorkerProcess& worker, const sdk::ReadRequest& request, uint64_t i) const {
  for (uint32_t field = 0; field < fields_.size(); ++field)
    worker.read_memory(offsets_[field], request.bytes(field, i));
}

// The host asks again for each sample of a batch that failed.
void DatasetWorkers::require_alive(const SampleAddress& sample) {
  const std::scoped_lock lock(mutex_);
  if (const auto known = deadly_.find(sample); known != deadly_.end()) throw Error(HR_DATA_CORRUPT, known->second);
}

void DatasetWorkers::refuse_deadly(const SampleAddress& sample, const WorkerEnded& end) {
  const std::string what =
      "two worker processes ended while they read " + name_of(sample) + ", the second one " + end.how;
  // No sample is bad for want of memory.
  if (end.killed) throw Error(HR_OUT_OF_MEMORY, what + ": fewer of them (data.num_workers) leave more to each");
  const std::string sentence = what + ": read this sample alone in Python to see why";
  const std::scoped_lock lock(mutex_);
  deadly_[sample] = sentence;
  throw Error(HR_DATA_CORRUPT, sentence);
}

void DatasetWorkers::refuse(const SampleAddress& sample, const WorkerRefused& refused) const {
  if (!refused.traceback.empty()) host_.warn(refused.traceback);
  const std::string sentence = name_of(sample) + ": " + refused.sentence;
  throw Error(refused.kind == "memory" ? HR_OUT_OF_MEMORY : HR_DATA_CORRUPT, sentence);
}

std::string DatasetWorkers::name_of(const SampleAddress& sample) const {
  return "sample " + std::to_string(sample.index) +
         (lengths_.size() > 1 ? " of split " + std::to_string(sample.split) : "") + " of " +
         settings_.file.filename().string();
}

}  // namespace headroom::python
