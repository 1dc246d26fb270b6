// anew makes a topic that holds nothing, whatever was left in one of that name.
export async function anew(conn, topic, options = {}) {
  try {
    await conn.deleteTopic(topic);
  } catch (error) {
    if (error.kind !== 'not_found' && error.kind !== 'unsupported') throw error;
  }
  await conn.createTopic(topic, options);
}
