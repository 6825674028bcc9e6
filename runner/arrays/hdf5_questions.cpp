#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>

#include "arrays/hdf5_child.hpp"
#include "arrays/hdf5_object.hpp"
#include "arrays/hdf5_writer.hpp"

namespace headroom {

// Values as bytes between a process and its child, which is the same program: plain ones as they are, strings and
// vectors with their count before them, everything else field by field.

// A type that is not a plain value has wire_fields(WireForm<Type> auto&), which ties its fields for both directions.
template <class T, class Type>
concept WireForm = std::same_as<std::remove_const_t<T>, Type>;

template <class T>
concept WirePlain = std::is_trivially_copyable_v<T>;

template <class T>
concept WireList = requires(T list) {
  typename T::value_type;
  list.resize(list.size());
  list.data();
};

class WireWriter {
 public:
  template <class T>
  void put(const T& value) {
    if constexpr (WirePlain<T>) {
      append(&value, sizeof value);
    } else if constexpr (WireList<T>) {
      put(uint64_t{value.size()});
      if constexpr (WirePlain<typename T::value_type>) {
        append(value.data(), value.size() * sizeof(typename T::value_type));
      } else {
        for (const auto& one : value) put(one);
      }
    } else {
      std::apply([this](const auto&... field) { (put(field), ...); }, wire_fields(value));
    }
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void append(const void* data, size_t bytes) {
    // data() of an empty list may be NULL.
    if (bytes > 0) bytes_.append(static_cast<const char*>(data), bytes);
  }
  std::string bytes_;
};

// Takes what a WireWriter put. Throws std::runtime_error where the bytes are not such a message.
class WireReader {
 public:
  explicit WireReader(std::span<const char> bytes) : left_(bytes) {}

  template <class T>
  void take(T& value) {
    if constexpr (WirePlain<T>) {
      take_bytes(&value, sizeof value);
    } else if constexpr (WireList<T>) {
      take_list(value);
    } else {
      std::apply([this](auto&... field) { (take(field), ...); }, wire_fields(value));
    }
  }

 private:
  template <class List>
  void take_list(List& list) {
    using Value = typename List::value_type;
    uint64_t count = 0;
    take(count);
    if constexpr (WirePlain<Value>) {
      // Before resize(): a count that the message cannot hold must not allocate.
      if (count > left_.size() / sizeof(Value)) throw std::runtime_error("a message is cut off");
      list.resize(count);
      take_bytes(list.data(), count * sizeof(Value));
    } else {
      // Each value takes bytes of the message, so a wrong count ends where the message does.
      for (uint64_t i = 0; i < count; ++i) take(list.emplace_back());
    }
  }

  void take_bytes(void* to, size_t bytes) {
    if (bytes > left_.size()) throw std::runtime_error("a message is cut off");
    if (bytes > 0) std::memcpy(to, left_.data(), bytes);
    left_ = left_.subspan(bytes);
  }
  std::span<const char> left_;
};

auto wire_fields(WireForm<ArrayMember> auto& member) {
  return std::tie(member.name, member.type_name, member.dtype, member.big_endian, member.shape, member.values,
                  member.file_offset, member.offset);
}

// Without memory_type, which is of one process.
auto wire_fields(WireForm<ArrayLayout> auto& layout) {
  return std::tie(layout.shape, layout.chunk, layout.compound, layout.element, layout.members, layout.filtered,
                  layout.element_bytes, layout.record_bytes, layout.as_in_file);
}

auto wire_fields(WireForm<OtherFile> auto& file) { return std::tie(file.path, file.identity); }

// Without id, which is of one process too.
auto wire_fields(WireForm<ArrayPlan> auto& plan) {
  return std::tie(plan.file, plan.others, plan.layout, plan.lane, plan.why_library, plan.offset, plan.grid, plan.chunks,
                  plan.filters, plan.fill);
}

auto wire_fields(WireForm<StoredFilter> auto& filter) { return std::tie(filter.id, filter.name, filter.available); }

auto wire_fields(WireForm<SurveyedObject> auto& object) {
  return std::tie(object.name, object.is_group, object.attributes, object.problem, object.shape, object.chunk,
                  object.type, object.layout, object.filters, object.element_bytes, object.stored_bytes,
                  object.raw_bytes, object.references);
}

auto wire_fields(WireForm<Survey> auto& survey) {
  return std::tie(survey.objects, survey.user_block_bytes, survey.cut_off);
}

auto wire_fields(WireForm<NewLayout> auto& layout) {
  return std::tie(layout.dataset, layout.chunk, layout.deflate, layout.shuffle);
}

auto wire_fields(WireForm<CopyRequest> auto& request) { return std::tie(request.to, request.layouts, request.tree); }

auto wire_fields(WireForm<Hdf5Name> auto& name) { return std::tie(name.name, name.is_group); }

auto wire_fields(WireForm<Hdf5Question> auto& question) {
  return std::tie(question.kind, question.path, question.object, question.attribute, question.copy, question.folder);
}

auto wire_fields(WireForm<Hdf5Answer> auto& answer) {
  return std::tie(answer.status, answer.sentence, answer.cannot_write, answer.plan, answer.names, answer.strings,
                  answer.survey, answer.attribute);
}

namespace {

void answer(const Hdf5Question& question, bool may_print, Hdf5Answer& result) {
  const auto file = Hdf5File::share(question.path);
  switch (question.kind) {
    case Hdf5Question::Kind::plan:
      result.plan = plan_array(*file, question.object, may_print);
      return;
    case Hdf5Question::Kind::list:
      if (find_object(file->id(), question.object, question.path) != Hdf5Kind::group) {
        throw sdk::Error(HR_INVALID_ARGUMENT,
                         dataset_of(question.object, question.path) + " is a dataset, not a group");
      }
      result.names = list_group(file->id(), question.object);
      return;
    case Hdf5Question::Kind::attribute:
      result.attribute = read_attribute(file->id(), question.object, question.attribute, question.path);
      return;
    case Hdf5Question::Kind::survey:
      result.survey = survey_file(file->id(), question.path);
      return;
    case Hdf5Question::Kind::copy:
      copy_without_values(file->id(), question.path, question.copy);
      return;
    case Hdf5Question::Kind::strings:
      result.strings = question.attribute.empty()
                           ? read_strings(file->id(), question.object, question.path)
                           : read_attribute_strings(file->id(), question.object, question.attribute, question.path);
      return;
  }
}

}  // namespace

Hdf5Answer answer_here(const Hdf5Question& question, bool may_print) {
  Hdf5Answer result;
  const Hdf5Lock lock;
  try {
    answer(question, may_print, result);
  } catch (const CannotWrite& problem) {
    result.status = problem.status();
    result.sentence = problem.what();
    // A flag of its own, since a status does not tell it from other errors: ask_hdf5() throws CannotWrite again.
    result.cannot_write = true;
  } catch (const sdk::Error& problem) {
    result.status = problem.status();
    result.sentence = problem.what();
  } catch (const std::bad_alloc&) {
    result.status = HR_OUT_OF_MEMORY;
    result.sentence = "out of memory while " + in_quotes(question.path) + " was looked at";
  } catch (const std::exception& problem) {
    result.status = HR_INTERNAL;
    result.sentence = problem.what();
  }
  return result;
}

namespace {

std::string bytes_of(const auto& message) {
  WireWriter out;
  out.put(message);
  return out.bytes();
}

template <class Message>
Message message_from(std::span<const char> bytes) {
  Message message;
  WireReader(bytes).take(message);
  return message;
}

}  // namespace

std::string to_bytes(const Hdf5Question& question) { return bytes_of(question); }
std::string to_bytes(const Hdf5Answer& answer) { return bytes_of(answer); }
Hdf5Question question_from(std::span<const char> bytes) { return message_from<Hdf5Question>(bytes); }
Hdf5Answer answer_from(std::span<const char> bytes) { return message_from<Hdf5Answer>(bytes); }

}  // namespace headroom
