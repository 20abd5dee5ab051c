// A memory management unit that forgets all pages of a region in one step (Boehnert and Scholl, "A Dynamic Virtual
// Memory Management under Real-Time Constraints", section IV).
//
// A page b is mapped when its region says so: c[b] names the region's first page a, and h[b] names a slot of the
// region's stack, between a and sp[a], that holds b. Whatever else c, h and s contain, they are never cleared. To
// unmap a region is to empty its stack: one write to sp[a].
//
// Invariant: a translation is given only if the page was filled since its region was made (Lemma 1 of the paper),
// for any contents of c, h and s at power-up. It needs of the software that regions do not overlap, that a page is
// filled once, into the region it lies in, and that sp is zero at power-up. `sp` holds the first free slot, so zero
// is the empty stack of every page, page 0 too.
//
// The three ports: (1) c, then sp; (2) h, then s; both local memories. (3) the page table in main memory, over
// `table_*`. Ports 1 and 2 need two clocks each and end before the answer of port 3, so a translation takes as long
// as one by a page table alone. Tables says where they are:
//   0  no region tables: the conventional unit, a valid bit in each word of the page table
//   1  c, sp, h, s in local memories
//   2  everything in main memory, read one after the other over port 3
//
// A page has a record in main memory: 16 bytes (Tables = 0, 1) or 32 bytes (2), at Base | page * size. The first word
// is its word of the page table: frame address in 31:13, bit 1 inhibits the cache; with Tables = 0 also bit 10
// present and rights in 9:6. With Tables = 2 words 4 to 7 are sp (rights in 3:0), c, h, s, each as offset or address
// of a record. Base is a multiple of twice the size of all records.
//
// Rights are {supervisor writes, supervisor reads, user writes, user reads}. They lie beside sp: one write changes
// those of a whole region.
//
// Registers:
//    0  base    write  address of the records
//    2  drop    write  forget the cached translations
//    8  region  write  record of the first page | rights: empties the region's stack and sets its rights
//    9  fill    write  record of the first page: the page of the last fault, or of `page`, is mapped in that region
//   10  entry   read   record of the page of the last fault if it was not mapped, else 0
//   11  cause   read   bit 2 a store, 1:0 why: 0 not mapped, 1 rights, 2 beyond the space
//   12  page    write  record of the page for the next `fill`; read: bit 0 whether that page is mapped (Tables = 1)
// With Tables = 2 the software writes sp, c, h and s itself, `region` only drops the cached translations of the region.
//
// Virtual addresses have 01 in 31:30. All others are untranslated, and refused in user mode.

module rtmmu #(
    parameter integer PagesLog2 = 12,
    parameter integer PageBytesLog2 = 13,
    parameter integer Tables = 1,
    parameter integer Entries = 1
) (
    input logic clk,
    input logic rst,

    // An access that waits for its translation, until it is given (`busy_o` falls) or refused (`fault_o` rises).
    input  logic        enable_i,
    input  logic        load_i,
    input  logic        store_i,
    input  logic        supervisor_i,
    input  logic [31:0] address_i,
    output logic [31:0] address_o,
    output logic        inhibit_o,
    output logic        miss_o,
    output logic        busy_o,
    output logic        fault_o,
    input  logic        fault_clear_i,

    // Port 3: reads of main memory. The request falls a clock after the last answer; an answer comes in the third clock
  // of its request or later, when ports 1 and 2 have read (the load store unit of mor1kx is no faster).
    output logic        table_request_o,
    output logic [31:0] table_address_o,
    input  logic        table_ack_i,
    // Not every form reads every bit.
    // verilator lint_off UNUSEDSIGNAL
    input  logic [31:0] table_data_i,
    // verilator lint_on UNUSEDSIGNAL

    // Registers. A write happens in the clock of its acknowledgement.
    input  logic        register_select_i,
    input  logic        register_write_i,
    input  logic [ 3:0] register_i,
    // verilator lint_off UNUSEDSIGNAL
    input  logic [31:0] register_data_i,
    // verilator lint_on UNUSEDSIGNAL
    output logic [31:0] register_data_o,
    output logic        register_ack_o
`ifdef FORMAL
    ,
    output logic [ 1:0] cause_o
`endif
);
  localparam integer Conventional = 0;
  localparam integer Local = 1;
  localparam integer Memory = 2;

  localparam integer W = PagesLog2;
  localparam integer RecordLog2 = (Tables == Memory) ? 5 : 4;
  localparam integer BaseLow = RecordLog2 + W;
  localparam integer FrameWidth = 32 - PageBytesLog2;
  localparam integer EntryWidth = (Entries < 2) ? 1 : $clog2(Entries);

  localparam logic [3:0] RegisterBase = 4'd0;
  localparam logic [3:0] RegisterDrop = 4'd2;
  localparam logic [3:0] RegisterRegion = 4'd8;
  localparam logic [3:0] RegisterFill = 4'd9;
  localparam logic [3:0] RegisterEntry = 4'd10;
  localparam logic [3:0] RegisterCause = 4'd11;
  localparam logic [3:0] RegisterPage = 4'd12;

  localparam logic [1:0] CauseMiss = 2'd0;
  localparam logic [1:0] CauseRights = 2'd1;
  localparam logic [1:0] CauseBeyond = 2'd2;

  localparam logic [1:0] Idle = 2'd0;
  localparam logic [1:0] Read = 2'd1;
  localparam logic [1:0] Settle = 2'd2;
  localparam logic [1:0] Update = 2'd3;

  logic [1:0] state;

  // The access.
  logic access, segment, beyond, translated, wanted, hit;
  logic [W-1:0] page;
  assign segment = address_i[31:30] == 2'b01;
  assign page = address_i[PageBytesLog2+:W];
  assign beyond = !segment || |address_i[29:PageBytesLog2+W];
  assign access = enable_i && (load_i || store_i);
  assign translated = enable_i && (segment || !supervisor_i);
  assign wanted = translated && access && !hit && !fault;
  assign busy_o = wanted || state == Read || state == Settle;
  assign miss_o = translated && !hit && !fault;

  // The last lookup.
  logic fault;
  logic [1:0] cause;
  logic stored;
  logic [W-1:0] looked_up;
  logic [31:BaseLow] base;
  assign fault_o = fault && state == Idle && !fault_clear_i;

  // What the tables say of the page looked up, in the clock of the last acknowledgement.
  logic mapped, allowed, answered;
  logic [3:0] rights;
  logic [W-1:0] region_of_page;
  assign allowed = rights[{supervisor_i, store_i}];

  // Registers. The core keeps an access until it is acknowledged and everything else is ready, and the next access may
  // follow in the next clock. So the acknowledgement stays, and one access that lasts is one write, as are two that are
  // equal: each write has no further effect when it is repeated.
  logic written, read_seen, write_done, write_again;
  logic [W-1:0] written_page;
  assign written = register_select_i && register_write_i && state == Idle && write_again;
  assign written_page = register_data_i[RecordLog2+:W];
  assign register_ack_o = register_select_i && (register_write_i ? write_done : read_seen && state == Idle);
  always_ff @(posedge clk)
    if (rst) read_seen <= 1'b0;
    else read_seen <= register_select_i && !register_write_i;

  always_comb
    case (register_i)
      RegisterEntry:
      register_data_o = (cause == CauseMiss) ? {table_address_o[31:RecordLog2], {RecordLog2{1'b0}}} : 32'd0;
      RegisterCause: register_data_o = {29'd0, stored, cause};
      RegisterPage: register_data_o = {31'd0, Tables == Local && mapped};
      default: register_data_o = 32'd0;
    endcase

  always_ff @(posedge clk) if (written && register_i == RegisterBase) base <= register_data_i[31:BaseLow];

  // Lookups.
  logic last_read;
  always_ff @(posedge clk)
    if (rst) begin
      state <= Idle;
      fault <= 1'b0;
      table_request_o <= 1'b0;
    end else begin
      if (fault_clear_i) fault <= 1'b0;
      case (state)
        Idle:
        if (wanted) begin
          looked_up <= page;
          stored <= store_i;
          if (beyond) begin
            fault <= 1'b1;
            cause <= CauseBeyond;
          end else begin
            table_request_o <= 1'b1;
            state <= Read;
          end
        end else if (written) begin
          if (Tables == Local && register_i[3]) begin
            if (register_i != RegisterFill) looked_up <= written_page;
            state <= Update;
          end
        end
        Read:
        if (answered || !access) begin
          table_request_o <= 1'b0;
          state <= Settle;
          if (access) begin
            fault <= !(mapped && allowed);
            cause <= mapped ? CauseRights : CauseMiss;
          end
        end
        // The core sees the request fall in this clock.
        Settle: state <= Idle;
        Update: if (update_done) state <= Idle;
        default: state <= Idle;
      endcase
    end
  assign answered = table_ack_i && last_read;

  // Tables. A region or a page is written one memory after the other, by the paths that lookups use; `step` counts.
  logic update_done;
  generate
    if (Tables == Local) begin : gen_local
      logic [2:0] step;
      logic fill, make;
      logic [W-1:0] region;
      logic [3:0] new_rights;
      logic [W-1:0] c, h, s;
      logic [W:0] sp;
      logic updating, c_write, sp_write, h_write, s_write;

      always_ff @(posedge clk)
        if (rst) step <= 3'd0;
        else if (state == Update && !update_done) step <= step + 3'd1;
        else step <= 3'd0;

      // The last write, and whether what is on the bus is it.
      logic held;
      logic [3:0] last_register;
      assign fill = last_register == RegisterFill;
      assign make = last_register == RegisterRegion;
      assign write_again = !write_done;
      assign write_done = held && {register_i, written_page, register_data_i[3:0]} == {last_register, region, new_rights};
      always_ff @(posedge clk)
        if (rst) held <= 1'b0;
        else held <= register_select_i && register_write_i && (held || written);
      always_ff @(posedge clk)
        if (written) begin
          last_register <= register_i;
          region <= written_page;
          new_rights <= register_data_i[3:0];
        end

      // 0: write c; 1: read c; 2: read sp, and s; 3: write sp and h; 4: read h; 5: write s. A new region writes c, too: of
      // its first page, which is as good as any. For `page` nothing is written, what it reads is then to be seen. A page
      // that is in its region's stack already is not filled again.
      assign updating = state == Update && !rst;
      assign c_write = updating && step == 3'd0 && (fill || make);
      assign sp_write = updating && step == 3'd3 && (fill && !mapped || make);
      assign h_write = updating && step == 3'd3 && fill && !mapped;
      assign s_write = updating && step == 3'd5;
      assign update_done = step == 3'd5 || step == 3'd3 && !(fill && !mapped);

      rtmmu_ram #(
          .AddressWidth(W),
          .DataWidth(W)
      ) c_table (
          .clk,
          .address(looked_up),
          .write(c_write),
          .write_data(region),
          .read_data(c)
      );
      rtmmu_ram #(
          .AddressWidth(W),
          .DataWidth(W + 5),
          .ZeroAtPowerUp(1)
      ) sp_table (
          .clk,
          .address(c),
          .write(sp_write),
          .write_data({fill ? rights : new_rights, (fill ? sp : {1'b0, region}) + {{W{1'b0}}, fill}}),
          .read_data({rights, sp})
      );
      rtmmu_ram #(
          .AddressWidth(W),
          .DataWidth(W)
      ) h_table (
          .clk,
          .address(looked_up),
          .write(h_write),
          .write_data(sp[W-1:0]),
          .read_data(h)
      );
      rtmmu_ram #(
          .AddressWidth(W),
          .DataWidth(W)
      ) s_table (
          .clk,
          .address(h),
          .write(s_write),
          .write_data(looked_up),
          .read_data(s)
      );

      rtmmu_check #(
          .W(W)
      ) check (
          .page(looked_up),
          .c,
          .h,
          .sp,
          .s,
          .mapped
      );
      assign region_of_page = c;
      assign last_read = 1'b1;
      always_ff @(posedge clk)
        if (state == Idle && wanted) table_address_o <= {base, page, {RecordLog2{1'b0}}};
    end else if (Tables == Memory) begin : gen_memory
      localparam logic [2:0] FieldTable = 3'd0;
      localparam logic [2:0] FieldStackPointer = 3'd4;
      localparam logic [2:0] FieldRegion = 3'd5;
      localparam logic [2:0] FieldSlot = 3'd6;
      localparam logic [2:0] FieldStack = 3'd7;
      logic [2:0] field;
      logic [W-1:0] c;
      logic [W:0] sp;
      logic in_stack, on_stack;
      logic [W-1:0] answer;

      // c of the page, sp of the region, h of the page, s of the slot, and the page table.
      assign answer = table_data_i[RecordLog2+:W];
      assign field = table_address_o[4:2];
      assign last_read = field == FieldTable;
      assign mapped = on_stack;
      assign region_of_page = c;
      assign update_done = 1'b1;
      assign write_again = 1'b1;
      always_ff @(posedge clk) write_done <= !rst && written;
      always_ff @(posedge clk)
        if (state == Idle) begin
          if (wanted) table_address_o <= {base, page, FieldRegion, 2'b00};
        end else if (state == Read && table_ack_i)
          case (field)
            FieldRegion: begin
              c <= answer;
              table_address_o <= {base, answer, FieldStackPointer, 2'b00};
            end
            FieldStackPointer: begin
              sp <= table_data_i[RecordLog2+:W+1];
              rights <= table_data_i[3:0];
              table_address_o <= {base, looked_up, FieldSlot, 2'b00};
            end
            FieldSlot: begin
              in_stack <= c <= answer && {1'b0, answer} < sp;
              table_address_o <= {base, answer, FieldStack, 2'b00};
            end
            FieldStack: begin
              on_stack <= in_stack && answer == looked_up;
              table_address_o <= {base, looked_up, FieldTable, 2'b00};
            end
            default: ;
          endcase
    end else begin : gen_conventional
      assign mapped = table_data_i[10];
      assign rights = table_data_i[9:6];
      assign region_of_page = '0;
      assign last_read = 1'b1;
      assign update_done = 1'b1;
      assign write_again = 1'b1;
      always_ff @(posedge clk) write_done <= !rst && written;
      always_ff @(posedge clk)
        if (state == Idle && wanted) table_address_o <= {base, page, {RecordLog2{1'b0}}};
    end
  endgenerate

  // Cached translations, each tagged with its region, so that those of a region are dropped in one clock. A unit with
  // one forgets it at every change, and so does the conventional one, which knows no regions.
  localparam Tagged = Entries > 1 && Tables != Conventional;
  logic [Entries-1:0] entry_valid, entry_hit;
  logic [W-1:0] entry_page[Entries];
  logic [W-1:0] entry_region[Entries];
  logic [FrameWidth-1:0] entry_frame[Entries];
  logic [3:0] entry_rights[Entries];
  logic [Entries-1:0] entry_inhibit;
  logic [EntryWidth-1:0] entry_next;
  logic [FrameWidth-1:0] hit_frame;
  logic drop_all, drop_region;
  assign drop_all = written && (register_i == RegisterDrop || register_i == RegisterBase || !Tagged && register_i[3]);
  assign drop_region = written && Tagged && register_i == RegisterRegion;

  always_ff @(posedge clk)
    if (rst) begin
      entry_valid <= '0;
      entry_next  <= '0;
    end else if (state == Read && answered && access && mapped && allowed) begin
      entry_valid[entry_next] <= 1'b1;
      entry_page[entry_next] <= looked_up;
      entry_region[entry_next] <= region_of_page;
      entry_frame[entry_next] <= table_data_i[31:PageBytesLog2];
      entry_rights[entry_next] <= rights;
      entry_inhibit[entry_next] <= table_data_i[1];
      if (Entries > 1) entry_next <= (32'(entry_next) == Entries - 1) ? '0 : entry_next + 1'b1;
    end else
      for (int i = 0; i < Entries; i++)
      if (drop_all || drop_region && entry_region[i] == written_page) entry_valid[i] <= 1'b0;

  always_comb begin
    hit_frame = '0;
    inhibit_o = 1'b0;
    for (int i = 0; i < Entries; i++) begin
      entry_hit[i] = entry_valid[i] && !beyond && entry_page[i] == page && entry_rights[i][{supervisor_i, store_i}];
      if (Entries == 1 || entry_hit[i]) hit_frame = hit_frame | entry_frame[i];
      inhibit_o = inhibit_o | entry_hit[i] & entry_inhibit[i];
    end
  end
  assign hit = |entry_hit;
  assign address_o = {segment ? hit_frame : address_i[31:PageBytesLog2], address_i[PageBytesLog2-1:0]};

`ifdef FORMAL
  // The core's side of the bargain is in formal/rtmmu_formal.sv; here is what the load store unit relies on.
  assign cause_o = cause;
  logic past = 1'b0, request_was;
  always_ff @(posedge clk) begin
    past <= !rst;
    request_was <= table_request_o;
  end
  always_comb
    if (past && !rst) begin
      // The clock in which the load store unit sees the request fall, the access still waits.
      if (request_was && !table_request_o) busy_after_request : assert (busy_o);
      // While memory is read nothing is given and nothing refused.
      if (table_request_o) waits : assert (busy_o && !fault_o);
      // A given translation and a refusal exclude each other, and both exclude a miss.
      if (access && !busy_o) answered_once : assert (!(hit && fault) && !miss_o);
      // Port 3 reads inside the records.
      if (table_request_o && Tables != Memory) inside : assert (table_address_o[31:BaseLow] == base);
    end
`endif
endmodule
